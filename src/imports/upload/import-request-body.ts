import type { MediaTypeObject, RequestBodyObject, SchemaObject } from '@nestjs/swagger';

const PEOPLE = 'CSV (text/csv) or JSON lines (application/x-ndjson)';

function raw(description: string, example?: string): MediaTypeObject {
  return { schema: { type: 'string', description }, ...(example !== undefined && { example }) };
}

function files(description: string): SchemaObject {
  return { type: 'array', items: { type: 'string', format: 'binary' }, description };
}

/** What `POST /v1/imports` takes, as OpenAPI has it: one file raw, or several as parts of a form. */
export const IMPORT_REQUEST_BODY: RequestBodyObject = {
  required: true,
  description: 'Raw people are of the kind that the query names.',
  content: {
    'text/csv': raw(
      'A header and one person a line; several providers are split by |',
      'externalId,email,firstName,lastName,providers\nC-1,noor@mail.example,Noor,Haddad,P-1|P-2\n',
    ),
    'application/x-ndjson': raw(
      'One person a line, with the same fields',
      '{"externalId": "C-1", "firstName": "Noor", "lastName": "Haddad", "providers": ["P-1"]}\n',
    ),
    'application/fhir+ndjson': raw('FHIR R4: one Practitioner, Patient, PractitionerRole, … a line; with kind=fhir'),
    'application/fhir+json': raw('FHIR R4: one Bundle; with kind=fhir'),
    'multipart/form-data': {
      schema: {
        type: 'object',
        properties: { providers: files(`Providers: ${PEOPLE}`), clients: files(`Clients: ${PEOPLE}`) },
        additionalProperties: { type: 'string', format: 'binary', description: 'FHIR, by any name; with kind=fhir' },
      },
    },
  },
};
