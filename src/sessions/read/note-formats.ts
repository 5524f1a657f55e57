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

/**
 * Chooses the format that an Accept header prefers (RFC 9110 §12.5.1). The most specific range determines a format's
 * quality; among equals, the order of `NOTE_FORMATS` decides.
 *
 * @param accept undefined or blank accepts any format
 * @returns undefined if no format is acceptable
 */
export function chooseFormat(accept: string | undefined): (typeof NOTE_FORMATS)[number] | undefined {
  const ranges = new Map((accept?.trim() || '*/*').split(',').map(readRange));
  const qualityOf = (type: string) =>
    ranges.get(type) ?? ranges.get(`${type.split('/')[0]}/*`) ?? ranges.get('*/*') ?? 0;
  const best = Math.max(...NOTE_FORMATS.map(qualityOf));
  return best === 0 ? undefined : NOTE_FORMATS.find((format) => qualityOf(format) === best);
}

function readRange(text: string): [type: string, quality: number] {
  const [type = '', ...parameters] = text
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const quality = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
  return [type, quality >= 0 && quality <= 1 ? quality : 0];
}
