import type { PersonKind } from '../../../people/model/person.js';
import type { ReadOptions, ReadRow, Version } from '../row/import-row.js';
import { type Rejection, rejection } from '../row/rejection.js';
import { idFault, isImportableId, type PersonCandidate, rowOf, validatePerson } from '../row/validate-person.js';
import type { JsonObject } from '../text/json-object.js';
import { fhirPerson } from './fhir-person.js';
import { objectIn, objectsIn, textIn, tokenIn } from './fhir-values.js';
import { knownId, typeOf, uriKey } from './reference-key.js';

type IdOptions = Pick<ReadOptions, 'idSystems' | 'now'>;

/** The kinds of people, by the type of their resource. */
export const PERSON_KINDS = new Map<unknown, PersonKind>([
  ['Practitioner', 'provider'],
  ['Patient', 'client'],
]);

/** Maximum characters of a text that a rejected row shows. */
const CELL_MAX = 1_000;

export interface RowSource {
  line: number;
  version: Version;
}

export function rejectedRow(line: number, fault: Rejection, person: Partial<PersonCandidate> = {}): ReadRow {
  const { kind, externalId, email, firstName, lastName } = person;
  const texts = Object.entries({ kind, externalId, email, firstName, lastName });
  const cells = texts.flatMap(([field, text]) => (text ? [[field, text.slice(0, CELL_MAX)]] : []));
  return rowOf(line, fault, { kind, externalId, cells: Object.fromEntries(cells) });
}

/** The row of a Practitioner or Patient. */
export function personRow(
  kind: PersonKind,
  resource: JsonObject,
  { line, version }: RowSource,
  options: IdOptions,
): ReadRow {
  const { nameText, ...read } = fhirPerson(kind, resource, options);
  const candidate: PersonCandidate = { kind, ...read };
  const fault = faultOf(resource, candidate, options);
  const isPartial = isSubsetted(resource);
  if (!fault && isGone(resource)) {
    return { type: 'row', line, version, is: 'gone', kind, externalId: candidate.externalId ?? '' };
  }
  const splitFault = nameText && !isPartial ? rejection('unsplit-name', { field: 'firstName' }) : undefined;
  const outcome = fault ?? splitFault ?? validatePerson(candidate, isPartial);
  if ('code' in outcome) {
    return { ...rejectedRow(line, outcome, nameText ? { ...candidate, lastName: nameText } : candidate), version };
  }
  return { type: 'row', line, version, is: 'person', person: outcome, ...(isPartial && { isPartial }) };
}

/** Why the resource cannot be imported, whether or not the person has gone. */
function faultOf(resource: JsonObject, { externalId }: PersonCandidate, { idSystems = [] }: IdOptions) {
  if (!externalId) return rejection(idSystems.length > 0 ? 'no-identifier' : 'no-id', { field: 'externalId' });
  // Another record stands for the person.
  const isReplaced = objectsIn(resource.link).some(({ type }) => type === 'replaced-by');
  return isReplaced ? rejection('merged-record') : idFault(externalId);
}

/** True if a person is inactive or deceased. */
function isGone({ active, deceasedBoolean, deceasedDateTime }: JsonObject): boolean {
  return active === false || deceasedBoolean === true || textIn(deceasedDateTime) !== undefined;
}

/** True if the resource shows only a part of its person. */
function isSubsetted(resource: JsonObject): boolean {
  return objectsIn(objectIn(resource.meta).tag).some(({ code }) => code === 'SUBSETTED');
}

/** The row of an entry that deletes a person. None if its external id is not known from the URL of the request. */
export function deletedRows(entry: JsonObject, source: RowSource, { idSystems = [] }: IdOptions): ReadRow[] {
  const url = tokenIn(objectIn(entry.request).url) ?? tokenIn(entry.fullUrl) ?? '';
  const kind = PERSON_KINDS.get(typeOf(url));
  const key = kind && uriKey(kind, url);
  const externalId = key && knownId(kind, key, idSystems);
  return isImportableId(externalId) && kind ? [{ type: 'row', ...source, is: 'deleted', kind, externalId }] : [];
}
