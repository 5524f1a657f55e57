import type { PersonKind } from '../../../people/model/person.js';
import type { ReadEvent, ReadOptions, ReadRow } from '../row/import-row.js';
import { rejection } from '../row/rejection.js';
import { isImportableId } from '../row/validate-person.js';
import { BUNDLE_LEVELS_MAX } from '../text/json-cutter.js';
import { isJsonObject, type JsonObject, type JsonRecord, parseObject } from '../text/json-records.js';
import { careTeamLinks, encounterLinks, ownLinks, roleReferences } from './care-references.js';
import { fhirPerson } from './fhir-person.js';
import { objectIn, objectsIn, textIn } from './fhir-values.js';
import { deletedRows, PERSON_KINDS, personRow, rejectedRow } from './person-rows.js';
import type { Referrer } from './provider-targets.js';
import { baseOf, keysOf } from './reference-key.js';
import { versionOf } from './resource-version.js';

interface FhirOptions extends Pick<ReadOptions, 'idSystems' | 'now' | 'encounterSince'> {
  limits: { row: number };
}

/** A record that is being read. Its place increases with each entry of a Bundle that was not cut. */
interface Reading {
  line: number;
  place: number;
  options: FhirOptions;
}

/**
 * Reads a FHIR R4 resource, an entry of a Bundle, or a Bundle. Returns a row for each person, followed by its references;
 * references for each role, care team and encounter; and a page for each Bundle with links to other pages.
 */
export function fhirEvents(record: JsonRecord, options: FhirOptions): Iterable<ReadEvent> {
  const { line, offset, text, bundle } = record;
  if (text === undefined) return tooLargeRows(record, options);
  const parsed = parseObject(text);
  if (!parsed) return [rejectedRow(line, rejection('bad-json'))];
  const reading = { line, place: offset, options };
  return bundle ? entryEvents(reading, parsed, bundle, 0) : resourceEvents(reading, parsed, {}, {}, 0);
}

function isResourceType(type: unknown): boolean {
  return typeof type === 'string' && /^[A-Z][A-Za-z]{1,60}$/.test(type);
}

/** Rejects a record that is too large if it may be a person, or contain one. */
function tooLargeRows({ line, resourceType, id }: JsonRecord, { idSystems = [], limits }: FhirOptions): ReadRow[] {
  const kind = PERSON_KINDS.get(resourceType);
  if (!kind && resourceType !== 'Bundle' && isResourceType(resourceType)) return [];
  const externalId = kind && idSystems.length === 0 ? id : undefined;
  return [rejectedRow(line, rejection('row-too-large', { limit: limits.row }), { kind, externalId })];
}

function* entryEvents(reading: Reading, entry: JsonObject, bundle: JsonObject, level: number): Generator<ReadEvent> {
  // An entry has at least two characters, so that its place is smaller than those of the next record.
  reading.place++;
  const method = textIn(objectIn(entry.request).method);
  if (method === 'DELETE') {
    const version = versionOf({}, entry, placeIn(bundle, reading.place));
    yield* deletedRows(entry, { line: reading.line, version }, reading.options);
  } else if (method !== 'GET' && method !== 'HEAD' && (entry.resource ?? null) !== null) {
    yield* resourceEvents(reading, entry.resource, entry, bundle, level);
  }
}

/** The first entry of a history is the newest. */
function placeIn(bundle: JsonObject, place: number): number {
  return bundle.type === 'history' ? 0 - place : place;
}

function* resourceEvents(
  reading: Reading,
  resource: unknown,
  entry: JsonObject,
  bundle: JsonObject,
  level: number,
): Generator<ReadEvent> {
  const { line, place, options } = reading;
  if (!isJsonObject(resource) || !isResourceType(resource.resourceType)) {
    yield rejectedRow(line, rejection('not-a-person'));
    return;
  }
  const type = resource.resourceType;
  const fullUrl = textIn(entry.fullUrl);
  const referrer: Referrer = { resource, base: baseOf(resource, fullUrl, linkOf(bundle, 'self')) };
  const kind = PERSON_KINDS.get(type);
  if (kind) {
    const version = versionOf(resource, entry, placeIn(bundle, place));
    yield* personEvents(kind, referrer, fullUrl, { line, version }, options);
  } else if (type === 'Bundle') yield* bundleEvents(reading, resource, level);
  else if (type === 'PractitionerRole') yield* roleReferences(referrer, fullUrl, options);
  else if (type === 'CareTeam') yield* careTeamLinks(referrer, options);
  else if (type === 'Encounter') yield* encounterLinks(referrer, options);
}

/** A Bundle that was small enough to be read as a whole, or that is left after its entries. */
function* bundleEvents(reading: Reading, bundle: JsonObject, level: number): Generator<ReadEvent> {
  const entries: unknown[] = Array.isArray(bundle.entry) ? bundle.entry : [];
  if (level >= BUNDLE_LEVELS_MAX && entries.length > 0) {
    yield rejectedRow(reading.line, rejection('nested-bundle'));
    return;
  }
  for (const entry of entries) {
    if (isJsonObject(entry)) yield* entryEvents(reading, entry, bundle, level + 1);
    else yield rejectedRow(reading.line, rejection('not-a-person'));
  }
  const [self, next, previous] = ['self', 'next', 'previous'].map((relation) => linkOf(bundle, relation));
  if (!self && !next && !previous) return;
  yield { type: 'page', ...(self && { self }), ...(next && { next }), ...(previous && { previous }) };
}

function linkOf(bundle: JsonObject, wanted: string): string | undefined {
  const names = wanted === 'previous' ? ['previous', 'prev'] : [wanted];
  return textIn(objectsIn(bundle.link).find(({ relation }) => names.includes(textIn(relation) ?? ''))?.url);
}

function* personEvents(
  kind: PersonKind,
  referrer: Referrer,
  fullUrl: string | undefined,
  source: Parameters<typeof personRow>[3],
  options: FhirOptions,
): Generator<ReadEvent> {
  const { resource, base } = referrer;
  const read = fhirPerson(kind, resource, options);
  const row = personRow(kind, resource, read, source, options);
  yield row;
  const { externalId } = read;
  // References may name rejected people, too, and providers who have gone.
  if (!isImportableId(externalId) || (row.is === 'gone' && kind === 'client')) return;
  const type = kind === 'provider' ? 'Practitioner' : 'Patient';
  for (const key of keysOf(kind, type, resource, base, fullUrl)) yield { type: 'alias', kind, key, externalId };
  if (kind === 'client') yield* ownLinks(externalId, referrer);
}
