import { applyDecorators } from '@nestjs/common';
import { ApiHeader, ApiOkResponse, type ApiQueryOptions, type OpenAPIObject } from '@nestjs/swagger';
import { FHIR_ERRORS, FHIR_JSON } from './operation-outcome.js';
import { MAX_COUNT } from './search/note-search.js';

/** Documents that a route answers with a resource. */
export function ApiResource(resourceType: string, description: string): MethodDecorator {
  const schema = {
    type: 'object',
    description,
    properties: { resourceType: { type: 'string', enum: [resourceType] } },
    required: ['resourceType'],
    additionalProperties: true,
  };
  return ApiOkResponse({ description, content: { [FHIR_JSON]: { schema } } });
}

/** Documents `Prefer: handling=strict`. */
export const ApiHandling = (): MethodDecorator =>
  applyDecorators(
    ApiHeader({
      name: 'Prefer',
      required: false,
      description:
        '`handling=strict` rejects all unknown search parameters. Otherwise they are ignored, unless they might narrow, sort or cut the results',
      schema: { type: 'string', example: 'handling=strict' },
    }),
  );

/** A search parameter, which may be absent. */
const query = (name: string, description: string, schema: object): ApiQueryOptions =>
  ({ name, description, required: false, schema }) as ApiQueryOptions;

const TEXT = { type: 'string' };
const TEXTS = { type: 'array', items: TEXT };

/** The parameters of a search, for OpenAPI. */
export const SEARCH_QUERY: readonly ApiQueryOptions[] = [
  query('patient.identifier', "The EHR's id of a client: `value` or `urn:notebridge:client|value`", TEXT),
  query('encounter.identifier', "The EHR's id of an appointment: `value` or `urn:notebridge:appointment|value`", TEXT),
  query('date', 'When the newest version was fetched, such as `ge2026-01-31`; several must all hold', TEXTS),
  query(
    '_lastUpdated',
    'When the note or its session changed last, as `date`. Results are in this order; those of a search by `date` only are in the order of `date`',
    TEXTS,
  ),
  query('_id', 'The id of one note', TEXT),
  query('_count', `Notes on a page, at most ${MAX_COUNT}; a page may have fewer, or none, and a \`next\` link`, {
    type: 'integer',
    minimum: 1,
    default: 20,
  }),
  query('_cursor', 'As in the `next` link of a page', TEXT),
];

const OUTCOME = {
  type: 'object',
  properties: { resourceType: { type: 'string', enum: ['OperationOutcome'] } },
  required: ['resourceType', 'issue'],
  additionalProperties: true,
};

/** Describes the errors of all operations below `/fhir` as OperationOutcomes. */
export function describeOutcomes(document: OpenAPIObject): OpenAPIObject {
  const outcome = { description: 'A problem as an OperationOutcome', content: { [FHIR_JSON]: { schema: OUTCOME } } };
  for (const [path, item] of Object.entries(document.paths)) {
    if (!FHIR_ERRORS.isOf(path)) continue;
    for (const { responses } of Object.values(item) as { responses: Record<string, object> }[]) {
      responses.default = outcome;
    }
  }
  return document;
}
