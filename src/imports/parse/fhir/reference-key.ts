import type { PersonKind } from '../../../people/model/person.js';
import type { ReferenceForm } from '../row/import-row.js';
import { isJsonObject } from '../text/json-records.js';
import { objectsIn, textIn } from './fhir-person.js';

// Keys are the canonical form of FHIR references: two references mean the same resource when their keys are equal.
// They may hold identifiers of people: store their fingerprints only.

/** The resources that a reference to a provider, or to a client, may name. */
const TYPES: Record<PersonKind, readonly string[]> = {
  provider: ['Practitioner', 'PractitionerRole'],
  client: ['Patient'],
};

/** Characters of a reference; a longer one means nobody. */
const URI_MAX = 2_000;

/** The keys of a resource by its id: also as `urn:uuid:…`, where a Bundle was cut into lines and its fullUrls are gone. */
export function literalKeys(kind: PersonKind, type: string, id: string): string[] {
  const isUuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id);
  return [`${kind}:${type}/${id}`, ...(isUuid ? [`${kind}:urn:uuid:${id.toLowerCase()}`] : [])];
}

/** The key of an identifier; `*` as system stands for any. */
function identifierKey(kind: PersonKind, system: string | undefined, value: string): string {
  return `${kind}:${system ?? ''}|${value}`;
}

/** Keys under which references mean a person known by its external id from an earlier import. */
export function knownPersonKeys(kind: PersonKind, externalId: string, idSystems: readonly string[] = []): string[] {
  if (idSystems.length > 0) return idSystems.map((system) => identifierKey(kind, system, externalId));
  return literalKeys(kind, kind === 'provider' ? 'Practitioner' : 'Patient', externalId);
}

/** Keys of a resource's identifiers, each with its system and with any. */
export function identifierKeys(kind: PersonKind, identifiers: unknown): string[] {
  return objectsIn(identifiers).flatMap(({ system, value }) => {
    const text = textIn(value);
    return text ? [textIn(system), '*'].map((one) => identifierKey(kind, one, text)) : [];
  });
}

/**
 * The key of a URI that names a resource: `Practitioner/1`, an absolute URL that ends so, `urn:uuid:…`, or a search
 * with an identifier (`Practitioner?identifier=system|value`); undefined for anything else.
 */
export function uriKey(kind: PersonKind, uri: string): string | undefined {
  if (uri.length > URI_MAX) return undefined;
  if (/^urn:(?:uuid|oid):/i.test(uri)) return `${kind}:${uri.toLowerCase()}`;
  const question = uri.indexOf('?');
  if (question >= 0) return searchKey(kind, uri.slice(0, question), uri.slice(question + 1));
  const [, type, id] = /(?:^|\/)([A-Z][A-Za-z]+)\/([^/?#|\s]+)(?:\/_history\/[^/]+)?$/.exec(uri) ?? [];
  return type && id && TYPES[kind].includes(type) ? `${kind}:${type}/${id}` : undefined;
}

function searchKey(kind: PersonKind, path: string, query: string): string | undefined {
  const type = path.slice(path.lastIndexOf('/') + 1);
  const [wanted, another] = query.split('&').filter((part) => part.startsWith('identifier='));
  if (!TYPES[kind].includes(type) || !wanted || another) return undefined;
  const token = decoded(wanted.slice('identifier='.length));
  const bar = token.indexOf('|');
  const system = bar < 0 ? '*' : token.slice(0, bar).trim();
  // FHIR R4, Search: in a parameter the characters $ , | \ are escaped by a backslash.
  const value = token
    .slice(bar + 1)
    .replace(/\\([$,|\\])/g, '$1')
    .trim();
  return value === '' ? undefined : identifierKey(kind, system, value);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The key of a FHIR Reference: its `reference`, else its `identifier` (a logical reference). */
export function referenceKey(kind: PersonKind, reference: unknown): string | undefined {
  if (!isJsonObject(reference)) return undefined;
  const uri = textIn(reference.reference);
  if (uri && !uri.startsWith('#')) return uriKey(kind, uri);
  const [type, [identifier]] = [textIn(reference.type), objectsIn([reference.identifier])];
  const value = textIn(identifier?.value);
  if (!value || (type && !TYPES[kind].includes(type))) return undefined;
  return identifierKey(kind, textIn(identifier?.system), value);
}

/** How a reference that has a key is written. */
export function referenceForm(reference: unknown): ReferenceForm {
  const uri = (isJsonObject(reference) && textIn(reference.reference)) || '#';
  if (uri.startsWith('#') || uri.includes('?')) return 'identifier';
  if (/^urn:/i.test(uri)) return /^urn:uuid:/i.test(uri) ? 'urn:uuid:…' : 'urn:oid:…';
  return uri.includes('PractitionerRole/') ? 'PractitionerRole/…' : 'Practitioner/…';
}
