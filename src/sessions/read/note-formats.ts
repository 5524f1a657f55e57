import { getSchemaPath } from '@nestjs/swagger';
import { NotesResponse } from '../model/session-view.js';

/** The formats of notes; the first is the default. */
export const NOTE_FORMATS = ['application/json', 'text/markdown', 'application/fhir+json'] as const;

/** The body of each format in OpenAPI. */
export const NOTE_CONTENT = {
  'application/json': { schema: { $ref: getSchemaPath(NotesResponse) } },
  'text/markdown': { schema: { type: 'string' } },
  'application/fhir+json': {
    schema: {
      type: 'object',
      description: 'A FHIR R4 Bundle of type collection: a DocumentReference for each document',
      properties: {
        resourceType: { type: 'string', enum: ['Bundle'] },
        type: { type: 'string', enum: ['collection'] },
        timestamp: { type: 'string', format: 'date-time' },
      },
      required: ['resourceType', 'type', 'timestamp'],
      additionalProperties: true,
    },
  },
} satisfies Record<(typeof NOTE_FORMATS)[number], object>;
