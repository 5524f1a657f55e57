import { law } from './platform-model.spec-support.js';
import type { ReconcilerModel } from './reconciler-model.spec-support.js';
import type { Row } from './reconciler-tables.spec-support.js';

const REVIEWS = [
  'email-taken',
  'create-unknown',
  'delete-unknown',
  'platform-user-taken',
  'platform-user-missing',
  'role-mismatch',
  'delete-linked',
];

/** Checks the laws that hold at any time. */
export function judgeMoment(model: ReconcilerModel): void {
  const mapped = model.tables.all().flatMap((row) => row.person.platformUserId ?? []);
  law(new Set(mapped).size === mapped.length, 'two people are mapped to one user');
  for (const row of model.tables.all()) {
    if (row.state !== 'needs-review') continue;
    law(row.code !== null && REVIEWS.includes(row.code), `needs-review for no documented reason: ${row.code}`);
    if (row.code !== 'create-unknown' && row.code !== 'delete-unknown') continue;
    law(row.person.attempt?.email === null, `${row.code} although a lookup by email is possible`);
    const isInFlight = model.flights.some((flight) => flight.id === row.lease && row.leaseUntil >= model.now);
    law(!isInFlight, `${row.code} while the call is in flight`);
  }
}

/** Checks the laws that hold once no work is due. */
export function judgeRest(model: ReconcilerModel): void {
  judgeMoment(model);
  for (const row of model.tables.all()) {
    const { state, code, id, person } = row;
    law(state !== 'pending', `${id} stays pending (${code})`);
    if (state === 'synced') judgePresence(model, row);
    if (state === 'deleted') law(!model.platform.userOf(id), `${id} is deleted here but exists on the platform`);
    if (state === 'deleting') {
      law(row.isHeld || model.tables.context(row).stillListed, `${id} stays deleting (${code})`);
    }
    if (state === 'waiting') {
      const isReady = model.tables.context(row).providers.every((provider) => provider.platformUserId !== null);
      law(!isReady, `${id} waits although all its providers are mirrored`);
    }
    if (code === 'email-taken') judgeEmailTaken(model, row);
    if (code === 'platform-user-missing') {
      law(model.platform.removedByOthers.has(person.platformUserId ?? ''), `${id}: its user is not missing`);
    }
    law(code !== 'platform-user-taken' || model.linkedManually, `${id}: platform-user-taken without a cause`);
  }
}

/** Checks the laws that hold after an operator resolved every person: the platform has the desired state. */
export function judgeEnd(model: ReconcilerModel): void {
  judgeRest(model);
  for (const { id, person, state, code } of model.tables.all()) {
    const isDone = person.wanted ? ['synced', 'waiting'].includes(state) : ['deleted', 'deleting'].includes(state);
    law(isDone, `${id} ends as ${state} (${code})`);
  }
  for (const user of model.platform.users.values()) {
    const owner = model.tables.people.get(user.partnerUserId ?? '');
    law(!owner || owner.person.platformUserId === user.id, `${user.partnerUserId} has an unmapped user`);
  }
}

function judgePresence(model: ReconcilerModel, { id, kind, person, wantedProviders }: Row): void {
  const userId = person.platformUserId ?? '';
  const user = model.platform.users.get(userId);
  if (!user) {
    law(model.platform.removedByOthers.has(userId), `${id} is synced, but the platform does not have it`);
    return;
  }
  if (kind === 'provider') return;
  const wanted = wantedProviders.map((provider) => model.tables.row(provider).person.platformUserId);
  law(JSON.stringify(user.providers) === JSON.stringify(wanted), `${id} is synced with another list`);
}

function judgeEmailTaken(model: ReconcilerModel, { id, person }: Row): void {
  const email = person.email ?? '';
  const holder = model.tables.people.get(model.tables.claims.get(email) ?? '');
  law(holder !== undefined && holder.id !== id, `${id}: email-taken, but no one has the claim`);
  const onPlatform = model.platform.users.get(holder.person.platformUserId ?? '')?.email === email;
  const { attempt, platformUserId } = holder.person;
  // Its user may have been deleted without an answer, or in the platform's own application.
  const isGone = attempt?.operation === 'deleteUser' || model.platform.removedByOthers.has(platformUserId ?? '');
  const needed = holder.person.email === email || attempt?.email === email || onPlatform || isGone;
  law(holder.state !== 'deleted' && needed, `${id}: email-taken by ${holder.id}, who does not need it`);
}
