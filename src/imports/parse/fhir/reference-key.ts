import type { PersonKind } from '../../../people/model/person.js';
import type { JsonObject } from '../text/json-records.js';
import { objectsIn, textIn } from './fhir-values.js';

// A key is the canonical form of a reference, and of each way in which references may name a resource:
//   provider/Practitioner/1                        relative, from or to a resource whose base URL is unknown
//   provider/Practitioner/1 ehr.example/fhir       absolute
//   provider/Practitioner/1 ~ehr.example/fhir      relative to this base URL, or absolute with the resource's own one
//   provider:urn:uuid:…                            the fullUrl of an entry
//   provider|system|value                          an identifier; * is any system

/** The resources that a reference to a person may name. */
export const REFERENCE_TYPES: Record<PersonKind, readonly string[]> = {
  provider: ['Practitioner', 'PractitionerRole'],
  client: ['Patient'],
};

/** Maximum characters of a reference or identifier. A longer one leads nowhere. */
const REFERENCE_MAX = 2_000;

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A URL that ends in a type and an id. */
interface LiteralReference {
  type: string;
  id: string;
  /** Undefined if the reference is relative. */
  base?: string;
}

/** Server and path of an http or https URL. The scheme is left out, because servers behind a proxy confuse the two. */
function baseUrl(url: string): string | undefined {
  const [, host, path = ''] = /^https?:\/\/([^/]+)(\/.*)?$/i.exec(url) ?? [];
  return host && host.toLowerCase() + path.replace(/\/$/, '');
}

/** Parses `Practitioner/1`, or an absolute URL that ends like this. */
function literalReference(uri: string): LiteralReference | undefined {
  if (uri.length > REFERENCE_MAX) return undefined;
  const [, before = '', type, id] =
    /^(.*\/)?([A-Z][A-Za-z]+)\/([^/?#|\s]+)$/.exec(uri.replace(/\/_history\/[^/]+$/, '')) ?? [];
  if (!type || !id) return undefined;
  if (!before.includes(':')) return { type, id };
  const base = baseUrl(before);
  return base === undefined ? undefined : { type, id, base };
}

/** The base URL of a resource, by the fullUrl of its entry or else by the URL of the search that found it. */
export function baseOf({ resourceType, id }: JsonObject, fullUrl: unknown, self: unknown): string | undefined {
  const full = literalReference(textIn(fullUrl) ?? '');
  if (full?.base !== undefined && full.type === resourceType && full.id === textIn(id)) return full.base;
  const url = textIn(self) ?? '';
  if (url.length > REFERENCE_MAX) return undefined;
  // Removes the query, operations such as $everything and _search, then `Patient` or `Patient/1`.
  const path = url.replace(/\?.*$/s, '').replace(/\/[_$].*$/, '');
  return baseUrl(path.replace(/\/[A-Z][a-z][A-Za-z]*(?:\/[^/]*)?$/, ''));
}

export function literalKey(kind: PersonKind, { type, id, base }: LiteralReference, isOwn = false): string {
  return `${kind}/${type}/${id}${base === undefined ? '' : ` ${isOwn ? '~' : ''}${base}`}`;
}

/** A literal key in parts: `target` is the key without its base URL. */
interface LiteralKey extends LiteralReference {
  target: string;
  /** The base URL is that of the resource that refers. */
  isOwn: boolean;
}

export function parseLiteralKey(key: string): LiteralKey | undefined {
  const [, target, type, id, own, base] = /^([a-z]+\/([A-Za-z]+)\/([^/ ]+))(?: (~?)(.*))?$/s.exec(key) ?? [];
  return target && type && id ? { target, type, id, base, isOwn: own === '~' } : undefined;
}

function identifierKey(kind: PersonKind, system: string | undefined, value: string): string | undefined {
  const key = `${kind}|${system ?? ''}|${value}`;
  return key.length > REFERENCE_MAX ? undefined : key;
}

/** Keys of a resource's identifiers. Those of providers may be searched for without a system, too. */
export function identifierKeys(kind: PersonKind, identifiers: unknown): string[] {
  const keys = objectsIn(identifiers).flatMap(({ system, value }) => {
    const text = textIn(value);
    const systems = kind === 'provider' ? [textIn(system), '*'] : [textIn(system)];
    return text ? systems.map((one) => identifierKey(kind, one, text)) : [];
  });
  return keys.filter((key) => key !== undefined);
}

/** Every key under which references may name a resource. */
export function keysOf(kind: PersonKind, type: string, resource: JsonObject, base?: string, fullUrl?: string) {
  const id = textIn(resource.id);
  const keys = id && id.length <= REFERENCE_MAX ? [literalKey(kind, { type, id, base })] : [];
  const lowerId = id?.toLowerCase();
  // A Bundle that was cut into lines has lost its fullUrls. Other UUIDs are found by `uuidTargets`.
  if (lowerId && lowerId !== id && UUID.test(lowerId)) keys.push(`${kind}:urn:uuid:${lowerId}`);
  if (fullUrl && isUrn(fullUrl)) keys.push(`${kind}:${fullUrl.toLowerCase()}`);
  return [...new Set([...keys, ...identifierKeys(kind, resource.identifier)])];
}

/** The keys of resources whose id is the UUID in this key. */
export function uuidTargets(kind: PersonKind, key: string): string[] {
  const [, id] = /^[a-z]+:urn:uuid:(.+)$/.exec(key) ?? [];
  return id && UUID.test(id) ? REFERENCE_TYPES[kind].map((type) => literalKey(kind, { type, id })) : [];
}

function isUrn(uri: string): boolean {
  return uri.length <= REFERENCE_MAX && /^urn:(?:uuid|oid):/i.test(uri);
}

/** The key of a URI. Undefined if it cannot name such a person. */
export function uriKey(kind: PersonKind, uri: string, ownBase: string | undefined): string | undefined {
  if (isUrn(uri)) return `${kind}:${uri.toLowerCase()}`;
  const search = identifierSearch(uri);
  if (search) return REFERENCE_TYPES[kind].includes(search.type) ? tokenKey(kind, search.token) : undefined;
  const literal = literalReference(uri);
  if (!literal || !REFERENCE_TYPES[kind].includes(literal.type)) return undefined;
  const { base = ownBase } = literal;
  return literalKey(kind, { ...literal, base }, base === ownBase);
}

/** The type of resource that a URI names, if it names one. */
export function typeOf(uri: string): string | undefined {
  return (identifierSearch(uri) ?? literalReference(uri))?.type;
}

/** Parses `Practitioner?identifier=system|value`. */
function identifierSearch(uri: string): { type: string; token: string } | undefined {
  const question = uri.indexOf('?');
  if (question < 0 || uri.length > REFERENCE_MAX) return undefined;
  const type = uri.slice(uri.lastIndexOf('/', question) + 1, question);
  const [wanted, another] = uri
    .slice(question + 1)
    .split('&')
    .filter((part) => part.startsWith('identifier='));
  return { type, token: another || !wanted ? '' : decoded(wanted.slice('identifier='.length)) };
}

function tokenKey(kind: PersonKind, token: string): string | undefined {
  const bar = token.indexOf('|');
  const system = bar < 0 ? '*' : token.slice(0, bar).trim();
  // FHIR R4, Search: parameters escape the characters $ , | \ by a backslash.
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

/** The key of a logical reference. Undefined without a value. */
export function logicalKey(kind: PersonKind, { system, value }: JsonObject): string | undefined {
  const text = textIn(value);
  return text && identifierKey(kind, textIn(system), text);
}

/** The external id that a key means if the person is known from an earlier import. */
export function knownId(kind: PersonKind, key: string, idSystems: readonly string[]): string | undefined {
  if (idSystems.length > 0) {
    const system = idSystems.find((one) => key.startsWith(`${kind}|${one}|`));
    return system === undefined ? undefined : key.slice(kind.length + system.length + 2);
  }
  const literal = parseLiteralKey(uuidTargets(kind, key)[0] ?? key);
  return literal?.type === REFERENCE_TYPES[kind][0] ? literal?.id : undefined;
}
