import type { PersonKind } from '../../people/person.js';
import type { AliasFact, LinkFact, RoleFact } from './import-row.js';
import { isJsonObject, type JsonObject, objectsIn, textIn } from './json-object.js';
import { identifierKeys, literalKey, referenceKey, uriKey } from './reference-key.js';

/** Statuses under which a resource says nothing about who treats whom. */
const VOID: readonly (string | undefined)[] = ['entered-in-error', 'proposed', 'cancelled'];

/** Every key under which references may mean this resource. */
function ownKeys(kind: PersonKind, type: string, resource: JsonObject, fullUrl: string | undefined): string[] {
  const id = textIn(resource.id);
  const keys = [
    ...(id ? [literalKey(kind, type, id)] : []),
    ...(fullUrl ? [uriKey(kind, fullUrl)].filter((key) => key !== undefined) : []),
    ...identifierKeys(kind, resource.identifier),
  ];
  return [...new Set(keys)];
}

/** The keys of a Practitioner or Patient; a rejected row has them, too, as long as its external id is one. */
export function aliasFacts(kind: PersonKind, resource: JsonObject, fullUrl: string | undefined, externalId: string) {
  const type = kind === 'provider' ? 'Practitioner' : 'Patient';
  return ownKeys(kind, type, resource, fullUrl).map((key): AliasFact => ({ type: 'alias', kind, key, externalId }));
}

/** Who fills a PractitionerRole, under each of the role's keys. */
export function roleFacts(resource: JsonObject, fullUrl: string | undefined): RoleFact[] {
  const practitionerKey = referenceKey('provider', resource.practitioner);
  if (!practitionerKey) return [];
  const keys = ownKeys('provider', 'PractitionerRole', resource, fullUrl).filter((key) => key !== practitionerKey);
  return keys.map((key) => ({ type: 'role', key, practitionerKey }));
}

/** A FHIR dateTime (also 2019 or 2019-03), as far as its year has four digits and is one of the common era. */
function dateTime(value: unknown): Date | undefined {
  const text = textIn(value);
  if (!text || !/^(?!0000)\d{4}(?!\d)/.test(text)) return undefined;
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

function since(...periods: unknown[]): Date | undefined {
  for (const period of periods) {
    if (!isJsonObject(period)) continue;
    const date = dateTime(period.start) ?? dateTime(period.end);
    if (date) return date;
  }
  return undefined;
}

function link(clientKey: string, rank: LinkFact['rank'], reference: unknown, position: number, at?: Date): LinkFact[] {
  const providerKey = referenceKey('provider', reference);
  if (!providerKey) return [];
  return [{ type: 'link', clientKey, providerKey, rank, position, ...(at ? { at } : {}) }];
}

/** A Patient's generalPractitioner, in the order given. */
export function generalPractitionerLinks(patient: JsonObject, clientKey: string): LinkFact[] {
  const references = Array.isArray(patient.generalPractitioner) ? patient.generalPractitioner : [];
  return references.flatMap((reference, position) => link(clientKey, 1, reference, position));
}

/** The providers that a CareTeam or an Encounter names for its subject; organizations and relatives are none. */
export function participantLinks(type: 'CareTeam' | 'Encounter', resource: JsonObject): LinkFact[] {
  const clientKey = referenceKey('client', resource.subject);
  if (!clientKey || VOID.includes(textIn(resource.status))) return [];
  const [rank, who] = type === 'CareTeam' ? ([2, 'member'] as const) : ([3, 'individual'] as const);
  return objectsIn(resource.participant).flatMap((participant, position) => {
    const at = since(participant.period, resource.period);
    return link(clientKey, rank, participant[who], position, at);
  });
}
