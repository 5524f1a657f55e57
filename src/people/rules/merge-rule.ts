import { Problem } from '../../http/problem/problem.js';
import { isCreate, type OtherUser, type Person, withNextUser } from './person.js';

/** Reasons why two clients cannot be merged now. */
const REFUSALS = {
  'client-deleted': 'This client was deleted. PUT it again first.',
  'call-under-way':
    'A create or deletion of one of the two clients is not settled. Repeat the merge once it is; resolve the client if it needs a review (see both with GET).',
  'session-requested':
    'A session of one of the two clients was requested, and is not settled. Repeat the merge once it is; resolve the session if its state is Unknown.',
};

/**
 * Checks that a client can be merged into another one: no create may name a user later, and no session be made for a
 * client that is gone.
 *
 * @throws {Problem} 409 `client-deleted`, `call-under-way` or `session-requested`
 */
export function checkMerge(client: Person, survivor: Person, isSessionRequested: boolean): void {
  const refusal = refusalOf(client, survivor, isSessionRequested);
  if (refusal) throw new Problem(refusal, REFUSALS[refusal]);
}

function refusalOf(client: Person, survivor: Person, isSessionRequested: boolean): keyof typeof REFUSALS | null {
  if (!client.wanted) return 'client-deleted';
  if ([client, survivor].some(mayMakeOrDelete)) return 'call-under-way';
  return isSessionRequested ? 'session-requested' : null;
}

const mayMakeOrDelete = ({ unsettled }: Person): boolean =>
  unsettled !== null && (isCreate(unsettled) || unsettled.operation === 'deleteUser');

/**
 * Gives the users of a merged client to the survivor, which goes on with one of them if it has none. Pure. A list of the
 * merged client without an answer may still replace the one that the survivor sends.
 */
export function withUsersOf(survivor: Person, client: Person): Person {
  const { platformUserId: id, origin, role, unsettled } = client;
  const own: OtherUser[] = id === null ? [] : [{ id, origin: origin ?? 'created', role }];
  const merged = withNextUser({ ...survivor, others: [...survivor.others, ...own, ...client.others] });
  return merged.platformUserId === survivor.platformUserId ? merged : { ...merged, unsettled };
}
