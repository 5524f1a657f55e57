import type { PersonKind } from '../../../people/rules/person.js';
import type { JsonObject } from '../../../text/json-object.js';
import { objectsIn, tokenIn } from './fhir-values.js';

// A key is the canonical form of a reference, and of each way in which references may name a resource:
//   provider/Practitioner/1                        relative, from or to a resource whose base URL is unknown
//   provider/Practitioner/1 ehr.example/fhir       absolute
//   provider/Practitioner/1 ~ehr.example/fhir      relative to this base URL, or absolute with the resource's own one
//   provider:urn:uuid:…                            the fullUrl of an entry
//   provider|system|value                          an identifier

/** The resources that a reference to a person may name. */
export const REFERENCE_TYPES: Record<PersonKind, readonly string[]> = {
  provider: ['Practitioner', 'PractitionerRole'],
  client: ['Patient'],
};

const URN = /^urn:(?:uuid|oid):/i;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Server and path of an http or https URL. The scheme is left out, because servers behind a proxy confuse the two. */
function baseUrl(url: string): string | undefined {
  const [, host, path = ''] = /^https?:\/\/([^/]+)(\/.*)?$/i.exec(url) ?? [];
  return host && host.toLowerCase() + path.replace(/\/$/, '');
}

/** The resource that a URI names, by its id or by an identifier. */
interface UriTarget {
  type: string;
  id?: string;
  /** Undefined if the reference is relative. */
  base?: string;
  /** `system|value` or `value`. */
  token?: string;
}

/** Parses `Practitioner/1`, `Practitioner?identifier=system|value`, or an absolute URL that ends like one of them. */
function uriTarget(uri: string): UriTarget | undefined {
  const question = uri.indexOf('?');
  if (question >= 0) {
    const [token, another] = new URLSearchParams(uri.slice(question)).getAll('identifier');
    const type = uri.slice(uri.lastIndexOf('/', question) + 1, question);
    return { type, ...(another === undefined && { token }) };
  }
  const path = uri.replace(/\/_history\/[^/]+$/, '');
  const [, before = '', type, id] = /^(.*\/)?([A-Z][A-Za-z]+)\/([^/#|\s]+)$/.exec(path) ?? [];
  const base = baseUrl(before);
  return type && (base || !before.includes(':')) ? { type, id, base } : undefined;
}

/** The type of resource that a URI names, if it names one. */
export function typeOf(uri: string): string | undefined {
  return uriTarget(uri)?.type;
}

/** A resource with references, or one to which they lead. */
export interface Referrer {
  resource: JsonObject;
  /** Of its entry in a Bundle. */
  fullUrl?: string;
  /** The base URL, if the fullUrl contains it. */
  base?: string;
}

export function referrerOf(resource: JsonObject, url: unknown): Referrer {
  const fullUrl = tokenIn(url);
  const target = fullUrl ? uriTarget(fullUrl) : undefined;
  const isOwn = target?.type === resource.resourceType && target?.id === tokenIn(resource.id);
  return { resource, fullUrl, base: isOwn ? target?.base : undefined };
}

/** A key in parts: `target` is the key without its base URL, `isOwn` says that this is the one of the referring resource. */
export function keyParts(key: string): { target: string; base?: string; isOwn: boolean } {
  const [, target = key, own, base] = /^([a-z]+\/[A-Za-z]+\/[^ ]+)(?: (~?)(.*))?$/s.exec(key) ?? [];
  return { target, base, isOwn: own === '~' };
}

export function identifierKeys(kind: PersonKind, identifiers: unknown): string[] {
  return objectsIn(identifiers).flatMap((identifier) => logicalKey(kind, identifier) ?? []);
}

/** Every key under which references may name a resource. */
export function keysOf(kind: PersonKind, { resource, base, fullUrl = '' }: Referrer): string[] {
  const id = tokenIn(resource.id) ?? '';
  const keys = id ? [`${kind}/${resource.resourceType}/${id}${base === undefined ? '' : ` ${base}`}`] : [];
  // A Bundle that was cut into lines has lost its fullUrls.
  const urns = [fullUrl, UUID.test(id) ? `urn:uuid:${id}` : ''].filter((uri) => URN.test(uri));
  keys.push(...urns.map((uri) => `${kind}:${uri.toLowerCase()}`));
  return [...new Set([...keys, ...identifierKeys(kind, resource.identifier)])];
}

/** The key of a URI. Undefined if it cannot name such a person. */
export function uriKey(kind: PersonKind, uri: string, ownBase?: string): string | undefined {
  if (URN.test(uri)) return `${kind}:${uri.toLowerCase()}`;
  const { type = '', id, token, base = ownBase } = uriTarget(uri) ?? {};
  if (!REFERENCE_TYPES[kind].includes(type)) return undefined;
  if (id) return `${kind}/${type}/${id}${base === undefined ? '' : ` ${base === ownBase ? '~' : ''}${base}`}`;
  const [, system = '', value] = /^(?:(.*?)\|)?(.*)$/s.exec(token ?? '') ?? [];
  return value?.trim() ? `${kind}|${system.trim()}|${value.trim()}` : undefined;
}

/** The key of a logical reference. Undefined without a value. */
export function logicalKey(kind: PersonKind, { system, value }: JsonObject): string | undefined {
  const text = tokenIn(value);
  return text && `${kind}|${tokenIn(system) ?? ''}|${text}`;
}

/** The external id that a key means if the person is known from an earlier import. */
export function knownId(kind: PersonKind, key: string, idSystems: readonly string[]): string | undefined {
  if (idSystems.length > 0) {
    const system = idSystems.find((one) => key.startsWith(`${kind}|${one}|`));
    return system === undefined ? undefined : key.slice(kind.length + system.length + 2);
  }
  const [, type, id] = /^[a-z]+(?:\/([A-Za-z]+)\/|:urn:uuid:)([^ ]+)/.exec(key) ?? [];
  return type === undefined || type === REFERENCE_TYPES[kind][0] ? id : undefined;
}
