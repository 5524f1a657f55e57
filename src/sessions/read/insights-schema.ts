import type { ApiResponseOptions } from '@nestjs/swagger';

type Schema = Extract<ApiResponseOptions, { schema: unknown }>['schema'];

const text: Schema = { type: 'string' };
const ms: Schema = { type: 'number', description: 'Milliseconds from the beginning of the recording' };

/** What the platform gave is passed on with the members that this description does not know. */
const given = (properties: Record<string, Schema>): Schema => ({
  type: 'object',
  properties,
  additionalProperties: true,
});
const listOf = (properties: Record<string, Schema>): Schema => ({ type: 'array', items: given(properties) });
const orNull = (schema: Schema): Schema => ({ ...schema, nullable: true });

export const TRANSCRIPT = given({
  utterances: listOf({
    text,
    start: ms,
    end: ms,
    speaker: text,
    words: listOf({ text, start: ms, end: ms }),
  }),
  speakerMapping: {
    type: 'object',
    description: "The platform's ids of users by the labels of speakers",
    additionalProperties: true,
  },
});

export const INSIGHTS: Schema = {
  type: 'object',
  description: 'Null: the platform gave none',
  properties: {
    topics: orNull(listOf({ headline: text, gist: text, start: ms, end: ms })),
    namedEntities: orNull(listOf({ entityType: text, name: text, summary: text })),
    analyticsSummary: orNull({
      type: 'object',
      description: "Measures by the platform's ids of users",
      additionalProperties: true,
    }),
    removedAt: {
      type: 'string',
      format: 'date-time',
      nullable: true,
      description: 'Since when they are no longer kept',
    },
  },
  required: ['topics', 'namedEntities', 'analyticsSummary', 'removedAt'],
};
