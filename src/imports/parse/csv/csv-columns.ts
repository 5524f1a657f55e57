import type { PersonKind } from '../../../people/model/person.js';
import { CSV_COLUMNS, type ImportKind } from '../row/import-row.js';

export type Column = 'kind' | (typeof CSV_COLUMNS)[number];

/** Columns of a file that are looked at; one with more is refused. */
export const COLUMNS_MAX = 1000;

/** Characters of a column's name beyond which it is nobody's. */
const NAME_MAX = 100;

/** Letters and digits only, in lower case: `E-Mail Address *` and `email_address` are one name. */
function plain(name: string): string {
  return name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');
}

/** What people call the columns; of two columns of one file, the one whose name stands earlier here is meant. */
const NAMES: Record<'externalId' | 'email' | 'firstName' | 'lastName', readonly string[]> = {
  externalId: [
    'externalid',
    'externaluserid',
    'partneruserid',
    'mrn',
    'medicalrecordnumber',
    'medicalrecordno',
    'recordnumber',
    'chartnumber',
    'chartid',
    'ehrid',
    'emrid',
    'uuid',
    'uid',
    'id',
  ],
  email: ['email', 'emailaddress', 'mail', 'primaryemail', 'contactemail', 'workemail', 'homeemail'],
  firstName: [
    'firstname',
    'givenname',
    'forename',
    'firstnames',
    'givennames',
    'legalfirstname',
    'first',
    'given',
    'fname',
  ],
  lastName: ['lastname', 'surname', 'familyname', 'legallastname', 'last', 'family', 'lname'],
};

/** Words that may stand before a name (`Patient ID`, `Clinician e-mail`). */
const SUBJECTS: Record<PersonKind, readonly string[]> = {
  client: ['patient', 'client', 'member', 'person', 'user'],
  provider: ['provider', 'therapist', 'clinician', 'practitioner', 'doctor', 'staff', 'employee', 'person', 'user'],
};

/** An id that only its subject makes one: `Patient number`. */
const ID_AFTER_SUBJECT = ['number', 'no', 'identifier', 'code', 'key'];

const PROVIDER_COLUMN =
  /^(?:primary|assigned|treating|main)?(?:(?:provider|therapist|clinician|practitioner|counsell?or|psychologist|psychiatrist|physician|doctor)s?(?:externalids?|ids?)?|generalpractitioners?|careteam)$/;

/** How well a column's name fits, 0 best; undefined: not at all. */
function rank(column: Column, name: string, kind: PersonKind): number | undefined {
  if (column === 'kind') return name === 'kind' ? 0 : undefined;
  if (column === 'providers') {
    if (kind === 'provider') return undefined;
    return name === 'providers' ? 0 : PROVIDER_COLUMN.test(name) ? 1 : undefined;
  }
  const known = NAMES[column];
  const direct = known.indexOf(name);
  if (direct >= 0) return direct;
  const subject = SUBJECTS[kind].find((word) => name.startsWith(word) && name.length > word.length);
  if (!subject) return undefined;
  const rest = name.slice(subject.length);
  if (column === 'externalId' && ID_AFTER_SUBJECT.includes(rest)) return known.length;
  const behind = known.indexOf(rest);
  return behind >= 0 ? behind : undefined;
}

/** The best column for each field, and the fields for which two are equally good. */
export function matchColumns(names: readonly string[], kind: ImportKind) {
  const person: PersonKind = kind === 'providers' ? 'provider' : 'client';
  const plainNames = names.slice(0, COLUMNS_MAX).map((name) => (name.length > NAME_MAX ? '' : plain(name)));
  const at: Partial<Record<Column, number>> = {};
  const doubled: Column[] = [];
  const wanted: Column[] = kind === 'fhir' ? ['kind', ...CSV_COLUMNS] : [...CSV_COLUMNS];
  for (const column of wanted) {
    const ranked = plainNames
      .map((name, index) => ({ index, rank: rank(column, name, person) }))
      .filter((candidate): candidate is { index: number; rank: number } => candidate.rank !== undefined)
      .sort((a, b) => a.rank - b.rank);
    const [best, second] = ranked;
    if (!best) continue;
    at[column] = best.index;
    if (second?.rank === best.rank) doubled.push(column);
  }
  return { at, doubled };
}

/** The columns that a file must have. */
export function neededColumns(kind: ImportKind): Column[] {
  const needed: Column[] = ['externalId', 'firstName', 'lastName'];
  if (kind === 'providers') needed.push('email');
  if (kind === 'fhir') needed.push('kind');
  return needed;
}
