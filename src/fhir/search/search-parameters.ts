/** A search parameter of DocumentReference as the CapabilityStatement names it. */
interface SearchParameter {
  readonly name: string;
  readonly type: 'reference' | 'date';
  readonly definition: string;
  readonly documentation: string;
}

const DEFINITIONS = 'http://hl7.org/fhir/SearchParameter';

/** The search parameters that are built. */
export const SEARCH_PARAMETERS: readonly SearchParameter[] = [
  {
    name: 'patient',
    type: 'reference',
    definition: `${DEFINITIONS}/clinical-patient`,
    documentation: "By the EHR's id of the client: patient.identifier or patient:identifier, with or without a system",
  },
  {
    name: 'encounter',
    type: 'reference',
    definition: `${DEFINITIONS}/DocumentReference-encounter`,
    documentation:
      "By the EHR's id of the appointment: encounter.identifier or encounter:identifier, with or without a system",
  },
  {
    name: 'date',
    type: 'date',
    definition: `${DEFINITIONS}/DocumentReference-date`,
    documentation: 'When the current version was fetched; prefixes eq, gt, ge, lt, le, sa and eb; may be repeated',
  },
  {
    name: '_lastUpdated',
    type: 'date',
    definition: `${DEFINITIONS}/Resource-lastUpdated`,
    documentation: 'Results are in this order, so that a reader that continues from the last one misses none; as date',
  },
];

/** Parameters that name one value, by what it is. Each has a chained form and one with a modifier. */
export const IDENTIFIERS = {
  client: ['patient.identifier', 'patient:identifier'],
  appointment: ['encounter.identifier', 'encounter:identifier'],
} as const;

/** Parameters that the server must understand or reject, because their loss would show notes of others. */
const NARROWING = ['patient', 'encounter', 'subject', 'date', '_lastUpdated', '_count', '_id', 'identifier'];

/** True if a parameter must be rejected: an unknown form of one that would narrow the results (FHIR R4 §3.1.1.4.4). */
export function isUnsupportedForm(name: string): boolean {
  const [base = ''] = name.split(/[.:]/, 1);
  return NARROWING.includes(base);
}
