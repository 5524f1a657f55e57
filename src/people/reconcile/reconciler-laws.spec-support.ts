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
  'create-unanswered',
];

/** What holds at any moment, whatever is under way. */
export function judgeMoment(model: ReconcilerModel): void {
  const mapped = model.tables.all().flatMap((row) => row.person.platformUserId ?? []);
  law(new Set(mapped).size === mapped.length, 'two people are mapped to one user');
  for (const row of model.tables.all()) {
    if (row.state !== 'needs-review') continue;
    law(row.code !== null && REVIEWS.includes(row.code), `needs-review for no documented reason: ${row.code}`);
    if (row.code !== 'create-unknown' && row.code !== 'delete-unknown') continue;
    law(row.person.attempt?.email === null, `${row.code} although an email would tell`);
    const underWay = model.flights.some((flight) => flight.id === row.lease && row.leaseUntil >= model.now);
    law(!underWay, `${row.code} while the call is under way`);
  }
}

/** What holds when nothing more happens by itself. */
export function judgeRest(model: ReconcilerModel): void {
  judgeMoment(model);
  for (const row of model.tables.all()) {
    const { state, code, id, person } = row;
    law(state !== 'pending', `${id} is pending (${code}) and nobody comes for it`);
    if (state === 'synced') judgePresence(model, row);
    if (state === 'deleted') law(!model.platform.userOf(id), `${id} is deleted here and present on the platform`);
    if (state === 'deleting') {
      law(model.tables.context(row).stillListed, `${id} is deleting (${code}) and nobody comes for it`);
    }
    if (state === 'waiting') {
      const isReady = model.tables.context(row).providers.every((provider) => provider.platformUserId !== null);
      law(!isReady, `${id} waits for providers that are all there`);
    }
    if (code === 'email-taken') judgeEmailTaken(model, row);
    if (code === 'platform-user-missing') {
      law(model.platform.removedByOthers.has(person.platformUserId ?? ''), `${id}: its user is not missing`);
    }
    law(code !== 'platform-user-taken' || model.linkedByHand, `${id}: platform-user-taken out of nothing`);
  }
}

/** What holds after a human being settled what only a human being can: the platform is what was wanted, no more. */
export function judgeEnd(model: ReconcilerModel): void {
  judgeRest(model);
  for (const { id, person, state, code } of model.tables.all()) {
    const isDone = person.wanted ? ['synced', 'waiting'].includes(state) : ['deleted', 'deleting'].includes(state);
    law(isDone, `${id} ends as ${state} (${code})`);
  }
  for (const user of model.platform.users.values()) {
    const owner = model.tables.people.get(user.partnerUserId ?? '');
    law(!owner || owner.person.platformUserId === user.id, `${user.partnerUserId} has a user that nobody is mapped to`);
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
  law(holder !== undefined && holder.id !== id, `${id}: email-taken by nobody`);
  const onPlatform = model.platform.users.get(holder.person.platformUserId ?? '')?.email === email;
  const { attempt, platformUserId } = holder.person;
  // Its user may be gone without an answer to the delete, or behind our back.
  const isGone = attempt?.operation === 'deleteUser' || model.platform.removedByOthers.has(platformUserId ?? '');
  const needed = holder.person.email === email || attempt?.email === email || onPlatform || isGone;
  law(holder.state !== 'deleted' && needed, `${id}: email-taken by ${holder.id}, who does not need it`);
}
