import type { CapabilityStatement, CapabilityStatementRestResourceSearchParam as SearchParameter } from 'fhir/r4';
import { FHIR_JSON } from './operation-outcome.js';

/** When the statement last changed; change it with the interface. */
const STATED_ON = '2026-11-30';

const parameter = (
  name: string,
  type: SearchParameter['type'],
  definition: string,
  documentation: string,
): SearchParameter => ({ name, type, definition: `http://hl7.org/fhir/SearchParameter/${definition}`, documentation });

const SEARCH_PARAMETERS = [
  parameter(
    'patient',
    'reference',
    'clinical-patient',
    "Only by the EHR's id: patient.identifier or patient:identifier. Also finds notes of sessions with several clients, which have no subject",
  ),
  parameter(
    'date',
    'date',
    'DocumentReference-date',
    'When the current version was fetched; all prefixes but ne and ap',
  ),
  parameter('_lastUpdated', 'date', 'Resource-lastUpdated', 'As date. The order of the results'),
  parameter('_id', 'token', 'Resource-id', 'One id'),
];

/**
 * States what is built of FHIR (FHIR R4 §5.1, CapabilityStatement).
 *
 * @param base absolute URL of the FHIR interface
 * @param version of this notebridge
 */
export function capabilityStatement(base: string, version: string): CapabilityStatement {
  return {
    resourceType: 'CapabilityStatement',
    status: 'active',
    date: STATED_ON,
    kind: 'instance',
    software: { name: 'notebridge', version },
    implementation: { description: 'Notes of therapy sessions, to be read', url: base },
    fhirVersion: '4.0.1',
    format: [FHIR_JSON, 'json'],
    rest: [
      {
        mode: 'server',
        security: { description: 'An API key as bearer token, with the scope notes:read' },
        resource: [
          {
            type: 'DocumentReference',
            documentation: 'A note in its newest version. A search by patient needs sessions:read, too',
            interaction: [
              { code: 'read' },
              {
                code: 'search-type',
                documentation:
                  'By GET, or by POST to _search. Any other parameter is rejected, but _format, _count, _pretty and _total',
              },
            ],
            versioning: 'versioned',
            conditionalRead: 'not-supported',
            referencePolicy: ['logical'],
            searchParam: SEARCH_PARAMETERS,
          },
        ],
      },
    ],
  };
}
