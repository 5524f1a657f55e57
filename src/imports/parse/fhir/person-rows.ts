import type { PersonKind } from '../../../people/rules/person.js';
import { isEmailAddress, profileOf } from '../../../people/rules/person-field-rules.js';
import type { JsonObject } from '../../../text/json-object.js';
import { usableEmail } from '../row/email-text.js';
import type { ReadOptions, ReadRow, RowCells, Version } from '../row/import-row.js';
import { type Rejection, rejection } from '../row/rejection.js';
import { idFault, isImportableId, type PersonCandidate, rowOf, validatePerson } from '../row/validate-person.js';
import { dateIn, hasEnded, isCurrent, objectIn, objectsIn, textIn, tokenIn } from './fhir-values.js';
import { knownId, typeOf, uriKey } from './reference-key.js';

type IdOptions = Pick<ReadOptions, 'idSystems' | 'now'>;

/** The kinds of people, by the type of their resource. */
export const PERSON_KINDS = new Map<unknown, PersonKind>([
  ['Practitioner', 'provider'],
  ['Patient', 'client'],
]);

/** Maximum characters of a text that a rejected row shows. */
const CELL_MAX = 1_000;

/** HumanName.use, best first. */
const NAME_USES = ['official', 'usual', undefined, 'temp', 'nickname', 'anonymous'];

/** HumanName.use of names that count only if there is no other: the person may have dropped them. */
const FORMER_USES = ['old', 'maiden'];

/** ContactPoint.use, best first. */
const EMAIL_USES = {
  provider: ['work', undefined, 'home', 'mobile', 'temp'],
  client: ['home', undefined, 'mobile', 'work', 'temp'],
};

/** Marks an address that only other Direct mailboxes can write to. */
const DIRECT_ADDRESS = 'http://hl7.org/fhir/us/core/StructureDefinition/us-core-direct';

export interface RowSource {
  line: number;
  version: Version;
}

export function rejectedRow(line: number, fault: Rejection, person: Partial<PersonCandidate> = {}): ReadRow {
  const { kind, externalId } = person;
  const texts = Object.entries({ kind, externalId, ...profileOf(person) });
  const cells = texts.flatMap(([field, text]) => (text ? [[field, text.slice(0, CELL_MAX)]] : []));
  return rowOf(line, fault, { kind, externalId, cells: Object.fromEntries(cells) });
}

/** The row of a Practitioner or Patient. */
export function personRow(kind: PersonKind, resource: JsonObject, source: RowSource, options: IdOptions): ReadRow {
  const { idSystems = [], now } = options;
  // Without systems, the id of the resource is the external id.
  const externalId = idSystems.length > 0 ? identifierOf(resource, idSystems, now) : textIn(resource.id);
  const { nameText, ...name } = nameOf(resource, now);
  const candidate: PersonCandidate = { kind, externalId, email: emailOf(resource, kind, now), ...name };
  const fault = faultOf(candidate, options);
  // In R4, only a Patient has links.
  const isMerged = kind === 'client' && objectsIn(resource.link).some(({ type }) => type === 'replaced-by');
  if (!fault && isMerged) return { type: 'row', ...source, is: 'merged', kind, externalId: externalId ?? '' };
  const { active, deceasedBoolean, deceasedDateTime, meta } = resource;
  const isGone = active === false || deceasedBoolean === true || textIn(deceasedDateTime) !== undefined;
  if (!fault && isGone) return { type: 'row', ...source, is: 'gone', kind, externalId: externalId ?? '' };
  const isPartial = objectsIn(objectIn(meta).tag).some(({ code }) => code === 'SUBSETTED');
  const splitFault = nameText && !isPartial ? rejection('unsplit-name', { field: 'firstName' }) : undefined;
  const outcome = fault ?? splitFault ?? validatePerson(candidate, isPartial);
  const shown = nameText ? { ...candidate, lastName: nameText } : candidate;
  if ('code' in outcome) return { ...rejectedRow(source.line, outcome, shown), ...source };
  return { type: 'row', ...source, is: 'person', person: outcome, isPartial: isPartial || undefined };
}

/** Why the resource cannot be imported, whether or not the person has gone. */
function faultOf({ externalId }: PersonCandidate, { idSystems = [] }: IdOptions) {
  if (!externalId) return rejection(idSystems.length > 0 ? 'no-identifier' : 'no-id', { field: 'externalId' });
  return idFault(externalId);
}

/** The row of an entry that deletes a person. None if its external id is not known from the URL of the request. */
export function deletedRows(entry: JsonObject, source: RowSource, { idSystems = [] }: IdOptions): ReadRow[] {
  const url = tokenIn(objectIn(entry.request).url) ?? tokenIn(entry.fullUrl) ?? '';
  const kind = PERSON_KINDS.get(typeOf(url));
  const key = kind && uriKey(kind, url);
  const externalId = key && knownId(kind, key, idSystems);
  return isImportableId(externalId) && kind ? [{ type: 'row', ...source, is: 'deleted', kind, externalId }] : [];
}

/** Items in ascending order of the first rank that differs. */
function ranked(items: JsonObject[], ranksOf: (item: JsonObject) => number[]): JsonObject[] {
  const pairs = items.map((item) => ({ item, ranks: ranksOf(item) }));
  pairs.sort((a, b) => a.ranks.map((rank, at) => rank - (b.ranks[at] ?? 0)).find((difference) => difference) ?? 0);
  return pairs.map(({ item }) => item);
}

/** The index of a use in a list, or the list's length. */
function rankOfUse(use: unknown, order: readonly (string | undefined)[]): number {
  const index = order.indexOf(textIn(use));
  return index < 0 ? order.length : index;
}

/** A name. `nameText` is set if the resource has it only as one text. */
type FhirName = Pick<RowCells, 'firstName' | 'lastName'> & { nameText?: string };

function readName({ family, given, text }: JsonObject): FhirName {
  const [firstName, lastName] = [given, family].map((part) => [part].flat().map(textIn).find(Boolean));
  return firstName || lastName ? { firstName, lastName } : { nameText: textIn(text) };
}

/** The best complete name, otherwise the best name. Former names count only if there is no current one. */
function nameOf(resource: JsonObject, now: Date): FhirName {
  const names = ranked(objectsIn(resource.name), ({ use }) => [rankOfUse(use, NAME_USES)]);
  const isFormer = ({ use, period }: JsonObject) => FORMER_USES.includes(textIn(use) ?? '') || !isCurrent(period, now);
  const read = (some: JsonObject[]) => some.map(readName).filter((name) => Object.values(name).some(Boolean));
  const current = read(names.filter((name) => !isFormer(name)));
  const candidates = current.length > 0 ? current : read(names);
  return candidates.find(({ firstName, lastName }) => firstName && lastName) ?? candidates[0] ?? {};
}

/**
 * The best email address, or a text that is not an address only if there is none. A Direct address counts last, and only
 * for providers, because they need an email; some exports mark every address as Direct.
 */
function emailOf(resource: JsonObject, kind: PersonKind, now: Date): string | undefined {
  const emails = objectsIn(resource.telecom).filter(({ system, use, period }) => {
    return system === 'email' && use !== 'old' && !hasEnded(period, now);
  });
  const wanted = kind === 'provider' ? emails : emails.filter((point) => !isDirect(point));
  const texts = ranked(wanted, (point) => [
    isDirect(point) ? 1 : 0,
    isCurrent(point.period, now) ? 0 : 1,
    typeof point.rank === 'number' ? point.rank : Number.MAX_VALUE,
    rankOfUse(point.use, EMAIL_USES[kind]),
  ]).map(({ value }) => usableEmail(textIn(value) ?? ''));
  return texts.find(isEmailAddress) ?? texts.find((text) => text !== '');
}

function isDirect({ extension }: JsonObject): boolean {
  return objectsIn(extension).some(({ url, valueBoolean }) => url === DIRECT_ADDRESS && valueBoolean === true);
}

/** The value of the first of these systems that the resource has: current before ended, then official ones. */
function identifierOf(resource: JsonObject, systems: readonly string[], now: Date): string | undefined {
  const usable = objectsIn(resource.identifier).filter(({ system, use, value }) => {
    return systems.includes(textIn(system) ?? '') && use !== 'old' && textIn(value);
  });
  const [best] = ranked(usable, ({ system, period, use }) => [
    systems.indexOf(textIn(system) ?? ''),
    isCurrent(period, now) ? 0 : 1,
    use === 'official' ? 0 : 1,
  ]);
  return textIn(best?.value);
}

/**
 * Reads the version of a resource from its meta, or from its entry. A deletion has only an entry: without the number in
 * its etag, it would count as older than a resource of the same second.
 */
export function versionOf({ resource, response }: JsonObject, place: number): Version {
  const { lastUpdated, versionId } = objectIn(objectIn(resource).meta);
  const { lastModified, etag } = objectIn(response);
  const at = dateIn(lastUpdated) ?? dateIn(lastModified);
  return { at, no: numberIn(versionId) ?? numberIn(etag), place };
}

/** Reads `3`, or an etag such as `W/"3"`. */
function numberIn(value: unknown): number | undefined {
  const [, digits] = /^(?:W\/)?"?(\d{1,15})"?$/.exec(textIn(value) ?? '') ?? [];
  return digits === undefined ? undefined : Number(digits);
}
