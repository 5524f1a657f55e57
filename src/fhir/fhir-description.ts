import { applyDecorators, Header } from '@nestjs/common';
import {
  ApiBody,
  ApiConsumes,
  ApiOkResponse,
  ApiQuery,
  type ApiQueryOptions,
  type OpenAPIObject,
} from '@nestjs/swagger';
import { FHIR_ERRORS, FHIR_JSON } from './operation-outcome.js';
import { MAX_COUNT } from './search/note-search.js';

/** Makes a route answer with a resource, and documents that. */
export function ApiResource(resourceType: string, description: string): MethodDecorator {
  const content = { [FHIR_JSON]: { schema: schemaOf(resourceType, description) } };
  return applyDecorators(
    Header('content-type', `${FHIR_JSON}; charset=utf-8`),
    ApiOkResponse({ description, content }),
  );
}

const TIMES = { type: 'array', items: { type: 'string' } };

/** The parameters of a search, for OpenAPI. */
const PARAMETERS = {
  'patient.identifier': { type: 'string', description: "The EHR's id of a client; also as `patient:identifier`" },
  date: { ...TIMES, description: 'When the newest version was fetched, such as `ge2026-01-31`; all must hold' },
  _lastUpdated: {
    ...TIMES,
    description: 'Last change of the note or its session, as `date`; the order of the results',
  },
  _id: { type: 'string', description: 'The id of one note' },
  _count: { type: 'integer', minimum: 1, default: 20, description: `Maximum notes on a page, at most ${MAX_COUNT}` },
  _cursor: { type: 'string', description: 'As in the `next` link of a page, which may have few or no notes' },
};

/** Documents the parameters of a search in a URL. */
export const SearchQuery = (): MethodDecorator =>
  applyDecorators(
    ...Object.entries(PARAMETERS).map(([name, { description, ...schema }]) =>
      ApiQuery({ name, description, schema, required: false } as ApiQueryOptions),
    ),
  );

/** Documents the parameters of a search in a form. */
export const SearchForm = (): MethodDecorator =>
  applyDecorators(
    ApiConsumes('application/x-www-form-urlencoded'),
    ApiBody({ required: false, schema: { type: 'object', properties: PARAMETERS } as object }),
  );

/** Describes the errors of all operations below `/fhir` as OperationOutcomes. */
export function describeOutcomes(document: OpenAPIObject): OpenAPIObject {
  const schema = schemaOf('OperationOutcome', 'A FHIR R4 OperationOutcome', 'issue');
  const outcome = { description: 'A problem as an OperationOutcome', content: { [FHIR_JSON]: { schema } } };
  for (const [path, item] of Object.entries(document.paths)) {
    if (!FHIR_ERRORS.isOf(path)) continue;
    for (const { responses } of Object.values(item) as { responses: Record<string, object> }[]) {
      responses.default = outcome;
    }
  }
  return document;
}

/** The schema of a resource, of which FHIR describes the rest. */
function schemaOf(resourceType: string, description: string, ...required: string[]) {
  return {
    type: 'object',
    description,
    properties: { resourceType: { type: 'string', enum: [resourceType] } },
    required: ['resourceType', ...required],
    additionalProperties: true,
  };
}
