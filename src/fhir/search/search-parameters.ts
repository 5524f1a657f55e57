/** A search parameter of DocumentReference as the CapabilityStatement names it. */
interface SearchParameter {
  readonly name: string;
  readonly type: 'reference' | 'date' | 'token';
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
    definition: `${DEFINITIONS}/clinical-encounter`,
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
    documentation:
      'As date. Results are in this order, so that a reader that continues from the last one misses none; those of a search by date only are in the order of date',
  },
  {
    name: '_id',
    type: 'token',
    definition: `${DEFINITIONS}/Resource-id`,
    documentation: 'One id',
  },
];

/** Parameters that name one value, by what it is. Identifiers have a chained form and one with a modifier. */
export const NAMES = {
  client: ['patient.identifier', 'patient:identifier'],
  appointment: ['encounter.identifier', 'encounter:identifier'],
  document: ['_id'],
} as const;

/** Parameters that narrow, order or cut results, in lower case: to ignore one would show notes of others, or wrong pages. */
const NOT_IGNORED: readonly string[] = [
  ...['patient', 'encounter', 'subject', 'identifier', 'date', '_lastupdated', '_id', '_count'],
  ...['_sort', '_summary', '_elements', '_filter', '_list'],
];

/**
 * True if an unknown parameter must be rejected in lenient handling, too: a modifier, a chain or a misspelt name might
 * narrow the results (FHIR R4 §3.1.1.4.4).
 */
export function isUnsupportedForm(name: string): boolean {
  return /[.:[]/.test(name) || NOT_IGNORED.includes(name.toLowerCase());
}
