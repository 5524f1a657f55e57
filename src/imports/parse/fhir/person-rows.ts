import type { PersonKind } from '../../../people/model/person.js';
import type { ReadOptions, ReadRow, RowCells, Version } from '../row/import-row.js';
import { type Rejection, rejection } from '../row/rejection.js';
import { idFault, isImportableId, type PersonCandidate, validatePerson } from '../row/validate-person.js';
import type { JsonObject } from '../text/json-records.js';
import { type FhirPerson, isGone, isReplaced, isSubsetted } from './fhir-person.js';
import { objectIn, textIn } from './fhir-values.js';
import { knownId, typeOf, uriKey } from './reference-key.js';

/** The kinds of people, by the type of their resource. */
export const PERSON_KINDS = new Map<unknown, PersonKind>([
  ['Practitioner', 'provider'],
  ['Patient', 'client'],
]);

/** Maximum characters of a text that a rejected row shows. */
const CELL_MAX = 1_000;

interface RowSource {
  line: number;
  version: Version;
}

export function rejectedRow(line: number, fault: Rejection, person: Partial<PersonCandidate> = {}): ReadRow {
  const { kind, externalId, email, firstName, lastName } = person;
  const texts = Object.entries({ kind, externalId, email, firstName, lastName });
  const cells: RowCells = Object.fromEntries(
    texts.flatMap(([field, text]) => (text ? [[field, text.slice(0, CELL_MAX)]] : [])),
  );
  const known = { ...(kind && { kind }), ...(isImportableId(externalId) && { externalId }) };
  return { type: 'row', line, is: 'rejected', ...known, cells, ...fault };
}

/** The row of a Practitioner or Patient. */
export function personRow(
  kind: PersonKind,
  resource: JsonObject,
  { nameText, ...read }: FhirPerson,
  { line, version }: RowSource,
  { idSystems = [] }: Pick<ReadOptions, 'idSystems'>,
): ReadRow {
  const candidate: PersonCandidate = { kind, ...read };
  const row = { type: 'row', line, version } as const;
  const reject = (fault: Rejection): ReadRow => {
    return { ...rejectedRow(line, fault, nameText ? { ...candidate, lastName: nameText } : candidate), version };
  };
  const { externalId } = candidate;
  if (!externalId) return reject(rejection(idSystems.length > 0 ? 'no-identifier' : 'no-id', { field: 'externalId' }));
  if (isReplaced(resource)) return reject(rejection('merged-record'));

  if (isGone(resource)) {
    const fault = idFault(externalId);
    return fault ? reject(fault) : { ...row, is: 'gone', kind, externalId };
  }
  if (isSubsetted(resource)) {
    const outcome = validatePerson(candidate, true);
    return 'code' in outcome ? reject(outcome) : { ...row, is: 'person', person: outcome, isPartial: true };
  }
  if (nameText) return reject(rejection('unsplit-name', { field: 'firstName' }));
  const outcome = validatePerson(candidate);
  return 'code' in outcome ? reject(outcome) : { ...row, is: 'person', person: outcome };
}

/** The row of an entry that deletes a person. None if its external id is not known from the URL of the request. */
export function deletedRows(
  entry: JsonObject,
  { line, version }: RowSource,
  { idSystems = [] }: Pick<ReadOptions, 'idSystems'>,
): ReadRow[] {
  const url = textIn(objectIn(entry.request).url) ?? textIn(entry.fullUrl) ?? '';
  const kind = PERSON_KINDS.get(typeOf(url));
  const key = kind && uriKey(kind, url, undefined);
  const externalId = key && knownId(kind, key, idSystems);
  return isImportableId(externalId)
    ? [{ type: 'row', line, version, is: 'deleted', kind: kind as PersonKind, externalId }]
    : [];
}
