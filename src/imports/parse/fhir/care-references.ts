import type { LinkReference, MergeReference, ReadOptions, ResourceReference } from '../row/import-row.js';
import { dateIn, endIn, hasEnded, objectIn, objectsIn, textIn, tokenIn } from './fhir-values.js';
import { identifierKeys, keysOf, logicalKey, REFERENCE_TYPES, type Referrer, typeOf, uriKey } from './reference-key.js';

type CareOptions = Pick<ReadOptions, 'now' | 'encounterSince'>;
type Link = Pick<LinkReference, 'client' | 'rank' | 'position'>;

/** How long an encounter names a provider by default. */
const ENCOUNTER_MS = 365 * 86_400_000;

/** Statuses of an encounter that did not take place. */
const VOID_STATUSES = ['entered-in-error', 'proposed', 'cancelled'];

/** @param periods of the care, the most precise first */
function links(from: Referrer, reference: unknown, link: Link, periods: unknown[] = []): LinkReference[] {
  const times = periods.map(objectIn).map(({ start, end }) => dateIn(start) ?? dateIn(end));
  const at = times.find((time) => time !== undefined);
  return providerTargets(reference, from).map((provider) => ({ type: 'link', ...link, provider, at }));
}

/** The general practitioners of a client. */
export function ownLinks(externalId: string, patient: Referrer): LinkReference[] {
  const references = objectsIn(patient.resource.generalPractitioner);
  return references.flatMap((one, position) => links(patient, one, { client: { externalId }, rank: 1, position }));
}

/** The practitioner of a PractitionerRole, under each key of the role. None if the role is no longer active. */
export function roleReferences(role: Referrer, { now }: CareOptions): ResourceReference[] {
  const { active, period, practitioner } = role.resource;
  if (active === false || hasEnded(period, now)) return [];
  const [target] = providerTargets(practitioner, role);
  const practitionerKey = target && 'key' in target ? target.key : null;
  const keys = keysOf('provider', role).filter((key) => key !== practitionerKey);
  return keys.map((key) => ({ type: 'role', key, practitionerKey }));
}

/** The members of an active CareTeam. */
export function careTeamLinks(team: Referrer, { now }: CareOptions): LinkReference[] {
  const { status, period: teamPeriod, participant } = team.resource;
  const client = subjectOf(team);
  if (!client || ![undefined, 'active'].includes(textIn(status)) || hasEnded(teamPeriod, now)) return [];
  return objectsIn(participant).flatMap(({ period, member }, position) =>
    hasEnded(period, now) ? [] : links(team, member, { client, rank: 2, position }, [period, teamPeriod]),
  );
}

/** The participants of a recent Encounter. */
export function encounterLinks(encounter: Referrer, { now, encounterSince }: CareOptions): LinkReference[] {
  const { status, period, participant } = encounter.resource;
  const client = subjectOf(encounter);
  const oldest = encounterSince ?? new Date(now.getTime() - ENCOUNTER_MS);
  const last = endIn(objectIn(period).end) ?? dateIn(objectIn(period).start) ?? now;
  if (!client || VOID_STATUSES.includes(textIn(status) ?? '') || last < oldest) return [];
  return objectsIn(participant).flatMap(({ period: own, individual }, position) =>
    links(encounter, individual, { client, rank: 3, position }, [own, period]),
  );
}

/** The merges that a Patient states. Its other links, `refer` and `seealso`, leave both charts in use. */
export function mergeReferences(externalId: string, patient: Referrer, line: number): MergeReference[] {
  return objectsIn(patient.resource.link).flatMap(({ type: says, other }) => {
    if (says !== 'replaced-by' && says !== 'replaces') return [];
    const { reference, identifier } = objectIn(other);
    const keys = [uriKey('client', tokenIn(reference) ?? '', patient.base), logicalKey('client', objectIn(identifier))];
    return [{ type: 'merge', line, externalId, says, others: keys.filter((key) => key !== undefined) }];
  });
}

function subjectOf({ resource, base }: Referrer): LinkReference['client'] | undefined {
  const { reference, identifier } = objectIn(resource.subject);
  const uri = tokenIn(reference);
  const key = uri ? uriKey('client', uri, base) : logicalKey('client', objectIn(identifier));
  return key ? { key } : undefined;
}

/**
 * Lists the targets of a reference to a provider: several keys for a contained practitioner with several identifiers,
 * none for a reference to a relative or to the client.
 */
function providerTargets(reference: unknown, from: Referrer): LinkReference['provider'][] {
  const { reference: written, type: writtenType, identifier, display } = objectIn(reference);
  const text = tokenIn(written);
  const logical = logicalKey('provider', objectIn(identifier));
  if (text?.startsWith('#') && !logical) return containedTargets(text, from);

  const uri = text?.startsWith('#') ? undefined : text;
  const type = uri ? typeOf(uri) : textIn(writtenType);
  if (type === 'Organization') return [{ lost: 'organization' }];
  if (type !== undefined && !REFERENCE_TYPES.provider.includes(type)) return [];
  const key = (uri && uriKey('provider', uri, from.base)) || logical;
  if (key) return [{ key }];
  if (uri) return [{ lost: 'unknown' }];
  return textIn(display) ? [{ lost: 'display-only' }] : [];
}

/** The identifiers of a contained practitioner, which has no other name outside of its resource. */
function containedTargets(uri: string, { resource, base }: Referrer): LinkReference['provider'][] {
  const contained = objectsIn(resource.contained).find(({ id }) => id === uri.slice(1) || id === uri);
  const type = contained ? textIn(contained.resourceType) : 'Practitioner';
  if (type === 'Practitioner') {
    const keys = identifierKeys('provider', contained?.identifier);
    return keys.length > 0 ? keys.map((key) => ({ key })) : [{ lost: 'contained' }];
  }
  if (type === 'Organization') return [{ lost: 'organization' }];
  if (type !== 'PractitionerRole') return [];
  // A role that refers to a role leads nowhere, so that this ends.
  const rest = objectsIn(resource.contained).filter(({ resourceType }) => resourceType === 'Practitioner');
  const targets = providerTargets(contained?.practitioner, { resource: { contained: rest }, base });
  return targets.length > 0 ? targets : [{ lost: 'role-without-practitioner' }];
}
