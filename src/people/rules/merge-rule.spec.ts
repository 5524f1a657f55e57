import { mirrored, NOW } from './calls.spec-support.js';
import { checkMerge, withUsersOf } from './merge-rule.js';
import { newcomer } from './newcomer.spec-support.js';
import { nextStep } from './next-step.js';
import { type Operation, type OtherUser, type Person, withNextUser } from './person.js';

const unsettled = (operation: Operation) => ({ call: '1', operation, email: null, lookUpAt: NOW });
const other = (id: string, more: Partial<OtherUser> = {}): OtherUser => ({
  id,
  origin: 'created',
  role: null,
  ...more,
});
const unmapped = newcomer('client');
const context = {
  ...({ now: NOW, claim: 'held', held: false, stillListed: false } as const),
  providers: [{ externalId: 'p', platformUserId: 'u1' }],
};

describe('a merge', () => {
  const problem = (client: Partial<Person>, survivor: Partial<Person> = {}, isRequested = false): string | null => {
    try {
      checkMerge({ ...mirrored, ...client }, { ...mirrored, ...survivor }, isRequested);
      return null;
    } catch (error) {
      return (error as { type: string }).type;
    }
  };

  test.each(['createClient', 'deleteUser'] as const)('is refused while either has a %s open', (operation) => {
    expect(problem({ unsettled: unsettled(operation) })).toBe('call-under-way');
    expect(problem({}, { unsettled: unsettled(operation) })).toBe('call-under-way');
  });

  test('is refused while a session is requested, and for a deleted client', () => {
    expect(problem({}, {}, true)).toBe('session-requested');
    expect(problem({ wanted: false })).toBe('client-deleted');
  });

  test('is possible while a list is not answered', () => {
    expect(problem({ unsettled: unsettled('setClientProviders') })).toBeNull();
  });

  test('adds the users of the merged client to those of the survivor', () => {
    const client = { ...mirrored, platformUserId: 'a', origin: 'linked' as const, others: [other('b')] };
    const survivor = { ...mirrored, platformUserId: 's', others: [other('t')] };
    const merged = withUsersOf(survivor, client);
    expect(merged.platformUserId).toBe('s');
    expect(merged.others).toEqual([other('t'), other('a', { origin: 'linked' }), other('b')]);
  });

  test('gives a survivor without a user that of the merged client, whose list is sent, again after an unanswered one', () => {
    const client = { ...mirrored, platformUserId: 'a', unsettled: unsettled('setClientProviders') };
    const merged = withUsersOf({ ...unmapped, review: 'platform-user-taken' }, client);
    expect(merged).toMatchObject({
      platformUserId: 'a',
      appliedProviders: null,
      review: null,
      unsettled: { call: '1' },
    });
    expect(nextStep(merged, context)).toMatchObject({ operation: 'setClientProviders' });
  });
});

describe('a person with other users', () => {
  test('goes on with the next one once it has none', () => {
    const gone = { ...unmapped, wanted: false, others: [other('a'), other('b', { origin: 'linked' })] };
    const next = withNextUser(gone);
    expect(next).toMatchObject({ platformUserId: 'a', others: [{ id: 'b' }] });
    expect(nextStep(next, context)).toMatchObject({ operation: 'deleteUser' });
    const last = withNextUser({ ...next, platformUserId: null });
    expect(nextStep(last, context)).toMatchObject({ state: 'needs-review', code: 'delete-linked' });
    expect(nextStep({ ...last, role: 'fits' }, context)).toMatchObject({ operation: 'deleteUser' });
  });

  test('keeps the user that it has, and waits for a create that may name one', () => {
    const mapped = { ...mirrored, others: [other('a')] };
    const waiting = { ...unmapped, unsettled: unsettled('createClient'), others: [other('a')] };
    expect([withNextUser(mapped), withNextUser(waiting)]).toEqual([mapped, waiting]);
  });
});
