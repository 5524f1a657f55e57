import type { PersonKind } from '../../../people/model/person.js';
import type { AliasFact, LinkFact, RoleFact } from '../row/import-row.js';
import { type JsonObject, objectsIn, textIn } from '../row/json-object.js';
import { identifierKeys, literalKeys, referenceForm, referenceKey, uriKey } from '../row/reference-key.js';
import { endOf, sinceOf } from './fhir-period.js';

/** Statuses of an Encounter under which it says nothing about who treats whom. */
const VOID: readonly (string | undefined)[] = ['entered-in-error', 'proposed', 'cancelled'];

/** Every key under which references may mean this resource. */
function ownKeys(kind: PersonKind, type: string, resource: JsonObject, fullUrl: string | undefined): string[] {
  const id = textIn(resource.id);
  const keys = [
    ...(id ? literalKeys(kind, type, id) : []),
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

/** Who fills a PractitionerRole, under each of the role's keys; nobody when it is not active any more. */
export function roleFacts(resource: JsonObject, fullUrl: string | undefined): RoleFact[] {
  const practitionerKey = referenceKey('provider', resource.practitioner);
  if (!practitionerKey || resource.active === false) return [];
  const keys = ownKeys('provider', 'PractitionerRole', resource, fullUrl).filter((key) => key !== practitionerKey);
  const ends = endOf(resource.period);
  return keys.map((key) => ({ type: 'role', key, practitionerKey, ...(ends && { ends }) }));
}

function link(
  clientKey: string,
  rank: LinkFact['rank'],
  reference: unknown,
  position: number,
  when: Pick<LinkFact, 'at' | 'ends'> = {},
): LinkFact[] {
  const providerKey = referenceKey('provider', reference);
  if (!providerKey) return [];
  return [{ type: 'link', clientKey, providerKey, form: referenceForm(reference), rank, position, ...when }];
}

/** A Patient's generalPractitioner, in the order given. */
export function generalPractitionerLinks(patient: JsonObject, clientKey: string): LinkFact[] {
  const references = objectsIn(patient.generalPractitioner);
  return references.flatMap((reference, position) => link(clientKey, 1, reference, position));
}

/**
 * The providers that a CareTeam names for its subject: a team that is active, or says nothing of it. Its members, or
 * itself, may have ended: which date that is measured by only the whole import tells.
 */
export function careTeamLinks(team: JsonObject): LinkFact[] {
  const clientKey = referenceKey('client', team.subject);
  if (!clientKey || ![undefined, 'active'].includes(textIn(team.status))) return [];
  return objectsIn(team.participant).flatMap(({ period, member }, position) => {
    const [at, ends] = [sinceOf(period, team.period), endOf(period, team.period)];
    return link(clientKey, 2, member, position, { ...(at && { at }), ...(ends && { ends }) });
  });
}

/** The providers that an Encounter names for its subject; relatives are none. */
export function encounterLinks(encounter: JsonObject): LinkFact[] {
  const clientKey = referenceKey('client', encounter.subject);
  if (!clientKey || VOID.includes(textIn(encounter.status))) return [];
  return objectsIn(encounter.participant).flatMap(({ period, individual }, position) => {
    const at = sinceOf(period, encounter.period);
    return link(clientKey, 3, individual, position, at && { at });
  });
}
