import type { PersonKind } from '../../../people/rules/person.js';
import { isJsonObject, type JsonObject, parseObject } from '../../../text/json-object.js';
import type { ReadEvent, ReadOptions, ReadRow } from '../row/import-row.js';
import { rejection } from '../row/rejection.js';
import type { JsonRecord } from '../text/json-cutter.js';
import { careTeamLinks, encounterLinks, mergeReferences, ownLinks, roleReferences } from './care-references.js';
import { objectIn, objectsIn, textIn, tokenIn } from './fhir-values.js';
import { deletedRows, PERSON_KINDS, personRow, type RowSource, rejectedRow, versionOf } from './person-rows.js';
import { keysOf, type Referrer, referrerOf } from './reference-key.js';

interface FhirOptions extends Pick<ReadOptions, 'idSystems' | 'now' | 'encounterSince'> {
  limits: { row: number };
  /** The number of records before it in the file. */
  place: number;
}

/**
 * Reads a FHIR R4 resource, or an entry of a Bundle. Returns a row for a person, followed by its references; references
 * for a role, care team or encounter; and a page for a Bundle with links to other pages.
 */
export function* fhirEvents(record: JsonRecord, options: FhirOptions): Generator<ReadEvent> {
  const { line, text, bundle } = record;
  if (text === undefined) return yield* tooLargeRows(record, options);
  const parsed = parseObject(text);
  if (!parsed) return yield rejectedRow(line, rejection('bad-json'));
  const entry = bundle ? parsed : { resource: parsed };
  // The first entry of a history is the newest.
  const place = bundle?.type === 'history' ? 0 - options.place : options.place;
  const source = { line, version: versionOf(entry, place) };
  const method = textIn(objectIn(entry.request).method);
  if (method === 'DELETE') yield* deletedRows(entry, source, options);
  else if (method !== 'GET' && method !== 'HEAD' && (entry.resource ?? null) !== null) {
    yield* resourceEvents(entry, source, options);
  }
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

function* resourceEvents(entry: JsonObject, source: RowSource, options: FhirOptions): Generator<ReadEvent> {
  const { resource } = entry;
  if (!isJsonObject(resource) || !isResourceType(resource.resourceType)) {
    return yield rejectedRow(source.line, rejection('not-a-person'));
  }
  const referrer = referrerOf(resource, entry.fullUrl);
  const type = resource.resourceType;
  const kind = PERSON_KINDS.get(type);
  if (kind) yield* personEvents(kind, referrer, source, options);
  else if (type === 'Bundle') yield* bundleEvents(resource, source);
  else if (type === 'PractitionerRole') yield* roleReferences(referrer, options);
  else if (type === 'CareTeam') yield* careTeamLinks(referrer, options);
  else if (type === 'Encounter') yield* encounterLinks(referrer, options);
}

/** A Bundle without the entries that were cut out of it. */
function* bundleEvents(bundle: JsonObject, { line }: RowSource): Generator<ReadEvent> {
  const left: unknown[] = Array.isArray(bundle.entry) ? bundle.entry : [];
  if (left.some(isJsonObject)) yield rejectedRow(line, rejection('nested-bundle'));
  else yield* left.map(() => rejectedRow(line, rejection('not-a-person')));
  const self = linkOf(bundle, 'self');
  const next = linkOf(bundle, 'next');
  const previous = linkOf(bundle, 'previous', 'prev');
  if (self || next || previous) yield { type: 'page', self, next, previous };
}

function linkOf(bundle: JsonObject, ...names: string[]): string | undefined {
  return tokenIn(objectsIn(bundle.link).find(({ relation }) => names.includes(textIn(relation) ?? ''))?.url);
}

function* personEvents(
  kind: PersonKind,
  referrer: Referrer,
  source: RowSource,
  options: FhirOptions,
): Generator<ReadEvent> {
  const row = personRow(kind, referrer.resource, source, options);
  yield row;
  const { externalId } = row.is === 'person' ? row.person : row;
  // References may name rejected people, too, and providers who have gone.
  if (!externalId || (row.is === 'gone' && kind === 'client')) return;
  for (const key of keysOf(kind, referrer)) yield { type: 'alias', kind, key, externalId };
  if (kind !== 'client') return;
  yield* mergeReferences(externalId, referrer, source.line);
  if (row.is !== 'merged') yield* ownLinks(externalId, referrer);
}
