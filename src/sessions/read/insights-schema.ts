import type { ApiResponseOptions } from '@nestjs/swagger';

type Schema = Extract<ApiResponseOptions, { schema: unknown }>['schema'];

const text: Schema = { type: 'string' };
const ms: Schema = { type: 'number', description: 'Milliseconds from the start of the recording' };

/** An object of the platform; it may have members that are not described here. */
const platformObject = (properties: Record<string, Schema>): Schema => ({
  type: 'object',
  properties,
  additionalProperties: true,
});
const listOf = (properties: Record<string, Schema>): Schema => ({ type: 'array', items: platformObject(properties) });
const orNull = (schema: Schema): Schema => ({ ...schema, nullable: true });

/** Platform users by the keys that the platform gives them. */
const peopleBy = (key: string): Schema => ({
  type: 'object',
  description: `The people by ${key}, with their current ids. Users that the EHR does not know are absent`,
  additionalProperties: {
    type: 'object',
    properties: {
      kind: { type: 'string', enum: ['provider', 'client'] },
      externalId: text,
      platformUserId: text,
    },
    required: ['kind', 'externalId', 'platformUserId'],
  },
});

export const TRANSCRIPT: Schema = {
  ...platformObject({
    utterances: listOf({
      text,
      start: ms,
      end: ms,
      speaker: text,
      words: listOf({ text, start: ms, end: ms }),
    }),
    speakerMapping: {
      type: 'object',
      description: "The platform's user ids by speaker label",
      additionalProperties: true,
    },
    speakers: peopleBy('speaker label'),
  }),
  required: ['speakers'],
};

export const INSIGHTS: Schema = {
  type: 'object',
  description: 'Null: none from the platform',
  properties: {
    topics: orNull(listOf({ headline: text, gist: text, start: ms, end: ms })),
    namedEntities: orNull(listOf({ entityType: text, name: text, summary: text })),
    analyticsSummary: orNull({
      type: 'object',
      description: "Measures by the platform's user ids",
      additionalProperties: true,
    }),
    people: peopleBy("the platform's user id"),
    removedAt: {
      type: 'string',
      format: 'date-time',
      nullable: true,
      description: 'When they were removed',
    },
  },
  required: ['topics', 'namedEntities', 'analyticsSummary', 'people', 'removedAt'],
};
