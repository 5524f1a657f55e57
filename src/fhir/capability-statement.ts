import type { FhirElement } from '../sessions/read/notes-fhir.js';
import { FHIR_JSON } from './operation-outcome.js';
import { SEARCH_PARAMETERS } from './search/search-parameters.js';

/** When the statement last changed; change it with the interface. */
const STATED_ON = '2026-11-28';

/**
 * States what is built of FHIR (FHIR R4 §5.1, CapabilityStatement).
 *
 * @param base absolute URL of the FHIR interface
 * @param version of this notebridge
 */
export function capabilityStatement(base: string, version: string): FhirElement {
  return {
    resourceType: 'CapabilityStatement',
    status: 'active',
    date: STATED_ON,
    kind: 'instance',
    software: { name: 'notebridge', version },
    implementation: { description: 'Notes of therapy sessions, to be read', url: base },
    fhirVersion: '4.0.1',
    format: [FHIR_JSON],
    rest: [
      {
        mode: 'server',
        security: { description: 'An API key as bearer token, with the scope notes:read' },
        resource: [
          {
            type: 'DocumentReference',
            documentation: 'A note in its newest version. A search by patient or encounter needs sessions:read, too',
            interaction: [{ code: 'read' }, { code: 'search-type' }],
            versioning: 'versioned',
            conditionalRead: 'not-supported',
            referencePolicy: ['logical'],
            searchParam: SEARCH_PARAMETERS.map((parameter) => ({ ...parameter })),
          },
        ],
      },
    ],
  };
}
