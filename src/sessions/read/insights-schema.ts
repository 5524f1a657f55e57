import type { ApiResponseOptions } from '@nestjs/swagger';

type Schema = Extract<ApiResponseOptions, { schema: unknown }>['schema'];
type Properties = Record<string, Schema>;

const text: Schema = { type: 'string' };
const ms: Schema = { type: 'number', description: 'Milliseconds from the start of the recording' };

/** A list of objects of the platform, which may have members that are not described here. */
const listOf = (properties: Properties): Schema => ({
  type: 'array',
  items: { type: 'object', properties, additionalProperties: true },
});
const mapOf = (description: string, additionalProperties: Schema | true = true): Schema => ({
  type: 'object',
  description,
  additionalProperties,
});
const orNull = (schema: Schema): Schema => ({ ...schema, nullable: true });

/** Platform users by the keys that the platform gives them. */
const peopleBy = (key: string): Schema =>
  mapOf(`The people by ${key}, with their current ids. Users that the EHR does not know are absent`, {
    type: 'object',
    properties: {
      kind: { type: 'string', enum: ['provider', 'client'] },
      externalId: text,
      platformUserId: text,
    },
    required: ['kind', 'externalId', 'platformUserId'],
  });

export const TRANSCRIPT: Schema = {
  type: 'object',
  properties: {
    utterances: listOf({ text, start: ms, end: ms, speaker: text, words: listOf({ text, start: ms, end: ms }) }),
    speakerMapping: mapOf("The platform's user ids by speaker label"),
    speakers: peopleBy('speaker label'),
  },
  additionalProperties: true,
  required: ['speakers'],
};

export const INSIGHTS: Schema = {
  type: 'object',
  description: 'Null: none from the platform',
  properties: {
    topics: orNull(listOf({ headline: text, gist: text, start: ms, end: ms })),
    namedEntities: orNull(listOf({ entityType: text, name: text, summary: text })),
    analyticsSummary: orNull(mapOf("Measures by the platform's user ids")),
    people: peopleBy("the platform's user id"),
    removedAt: { type: 'string', format: 'date-time', nullable: true, description: 'When they were removed' },
  },
  required: ['topics', 'namedEntities', 'analyticsSummary', 'people', 'removedAt'],
};
