import { at, NOW } from './calls.spec-support.js';
import { newcomer } from './newcomer.spec-support.js';
import { dueAtOf, isReading, nextStep } from './next-step.js';
import {
  type DecisionContext,
  needsClaim,
  type Operation,
  type Person,
  RESTORED_CALL,
  type Unsettled,
} from './person.js';
import { applyResolve } from './resolve-rule.js';

const later = at(60_000);
const provider = (more: Partial<Person> = {}): Person => ({ ...newcomer('provider'), email: 'a1', ...more });
const client = (more: Partial<Person> = {}): Person => ({ ...newcomer('client'), ...more });
const place = newcomer('client').wantedAt;
const unsettled = (operation: Operation, more: Partial<Unsettled> = {}): Unsettled => ({
  ...{ call: '1', operation, email: 'a1', lookUpAt: later },
  ...more,
});
const context = (more: Partial<DecisionContext> = {}): DecisionContext => ({
  ...{ now: NOW, claim: 'held', providers: [], held: false, stillListed: false },
  ...more,
});
const named = (...ids: (string | null)[]) => ({
  providers: ids.map((platformUserId, n) => ({ externalId: `p${n}`, platformUserId })),
});
const rest = (state: string, code: string | null = null) => ({ do: 'rest', state, code });

describe('a person to create', () => {
  test('claims its email until it has a user, also while it rests', () => {
    expect([provider(), provider({ fault: 'rejected' })].map(needsClaim)).toEqual([true, true]);
    const others = [client(), provider({ wanted: false }), provider({ platformUserId: 'u1' })];
    expect(others.map(needsClaim)).toEqual([false, false, false]);
  });

  test('needs review without a call if it cannot claim its email', () => {
    expect(nextStep(provider(), context({ claim: 'taken' }))).toEqual(rest('needs-review', 'email-taken'));
  });

  test('with an email is looked up before it is created, and again if the last check is ten minutes old', () => {
    const since = (ms: number) => nextStep(provider({ checkedAbsentAt: at(-ms) }), context());
    expect(nextStep(provider(), context())).toMatchObject({ operation: 'checkUser', subject: 'wanted' });
    expect(since(599_999)).toMatchObject({ operation: 'createProvider' });
    expect(since(600_000)).toMatchObject({ operation: 'checkUser', subject: 'wanted' });
  });

  test('without an email is created immediately, with only its primary, whoever has a claim', () => {
    for (const claim of ['held', 'free', 'taken'] as const) {
      const step = nextStep(client(), context({ ...named('u1', 'u2'), claim }));
      expect(step).toMatchObject({ operation: 'createClient', state: 'pending', providerUserIds: ['u1'] });
    }
  });

  test('keeps one place for its check and its create: when it was stated', () => {
    expect(nextStep(provider(), context())).toMatchObject({ dueAt: place });
    expect(nextStep(provider({ checkedAbsentAt: NOW }), context())).toMatchObject({ dueAt: place });
  });

  test('makes no call before its time', () => {
    expect(nextStep(provider({ dueAt: later, failures: 1 }), context())).toMatchObject({ dueAt: later });
  });

  test('waits until all its providers are mirrored', () => {
    const waiting = rest('waiting', 'provider-not-mirrored');
    expect(nextStep(client(), context(named(null, 'u2')))).toEqual(waiting);
    expect(nextStep(client(), context(named('u1', null)))).toEqual(waiting);
    expect(nextStep(client({ platformUserId: 'u9' }), context(named('u1', null)))).toEqual(waiting);
  });

  test('makes no call while it needs review', () => {
    const step = nextStep(client({ review: 'role-mismatch' }), context(named('u1')));
    expect(step).toEqual(rest('needs-review', 'role-mismatch'));
  });
});

describe('a failed person', () => {
  test('makes no call without a time, wanted or not', () => {
    expect(nextStep(provider({ fault: 'rejected' }), context())).toEqual(rest('failed', 'rejected'));
    const unwanted = provider({ fault: 'forbidden', wanted: false, platformUserId: 'u1' });
    expect(nextStep(unwanted, context())).toEqual(rest('failed', 'forbidden'));
  });

  test('is tried once more at its time, and shown as failed until then', () => {
    const step = nextStep(provider({ fault: 'rejected', dueAt: later }), context());
    expect(step).toMatchObject({ operation: 'checkUser', state: 'failed', dueAt: later });
  });
});

describe('a create without an answer', () => {
  const lost = provider({ unsettled: unsettled('createProvider') });

  test('is looked up by the email that was sent, once it can no longer take effect, whoever has the claim', () => {
    const lookup = { operation: 'checkUser', subject: 'attempted', dueAt: later };
    expect(nextStep(lost, context())).toMatchObject({ ...lookup, state: 'pending' });
    expect(nextStep({ ...lost, email: 'b2' }, context({ claim: 'taken' }))).toMatchObject(lookup);
    expect(nextStep({ ...lost, wanted: false }, context())).toMatchObject({ ...lookup, state: 'deleting' });
  });

  test('is looked up, too, beside the user that another answer has named', () => {
    expect(nextStep({ ...lost, platformUserId: 'u1' }, context())).toMatchObject({
      subject: 'attempted',
      dueAt: later,
    });
  });

  test('is not looked up before the time of the person', () => {
    const dueAt = at(90_000);
    expect(nextStep({ ...lost, dueAt }, context())).toMatchObject({ dueAt });
  });

  test('without an email needs review, but not while the call is in flight', () => {
    const open = unsettled('createClient', { email: null });
    const blind = client({ unsettled: open });
    expect(nextStep(blind, context(named('u1')))).toEqual(rest('needs-review', 'create-unknown'));
    expect(nextStep({ ...blind, wanted: false }, context())).toEqual(rest('needs-review', 'delete-unknown'));
    const call = { id: '1', operation: 'createClient' as const, version: 1, lookUpAt: later };
    const step = nextStep({ ...blind, call }, context(named('u1')));
    expect(step).toMatchObject({ do: 'call', state: 'pending' });
  });

  test('that may be lost by a restore needs review without an email, until an operator decides', () => {
    const mark = unsettled('createClient', { call: RESTORED_CALL, email: null });
    const restored = client({ unsettled: mark });
    expect(nextStep(restored, context(named('u1')))).toEqual(rest('needs-review', 'restored-unknown'));
    expect(nextStep({ ...restored, wanted: false }, context())).toEqual(rest('needs-review', 'delete-unknown'));
    const retried = applyResolve(restored, 'retry', { now: NOW });
    expect(nextStep(retried, context(named('u1')))).toEqual(rest('needs-review', 'restored-unknown'));
    const resolved = applyResolve(restored, 'create', { now: NOW });
    expect(nextStep(resolved, context(named('u1')))).toMatchObject({ operation: 'createClient' });
  });

  test('is the only reason to look up a person that is deleted', () => {
    expect(nextStep(provider({ wanted: false }), context())).toEqual(rest('deleted'));
    expect(nextStep(provider({ wanted: false, checkedAbsentAt: NOW }), context())).toEqual(rest('deleted'));
  });
});

describe('a client’s list', () => {
  const mapped = client({ platformUserId: 'u9', appliedProviders: ['u1', 'u2'] });

  test('is replaced as a whole if it differs from the applied list, even only in order', () => {
    const list = { operation: 'setClientProviders', state: 'pending' };
    expect(nextStep(mapped, context(named('u1', 'u2')))).toEqual(rest('synced'));
    expect(nextStep(mapped, context(named('u2', 'u1')))).toMatchObject({ ...list, providerUserIds: ['u2', 'u1'] });
    expect(nextStep(mapped, context(named('u1', 'u2', 'u3')))).toMatchObject(list);
    expect(nextStep({ ...mapped, appliedProviders: null }, context(named('u1', 'u2')))).toMatchObject(list);
  });

  test('is sent again once an earlier one without an answer can no longer replace it; the client is synced', () => {
    const open = { ...mapped, unsettled: unsettled('setClientProviders') };
    const step = nextStep(open, context(named('u1', 'u2')));
    expect(step).toMatchObject({ operation: 'setClientProviders', state: 'synced', dueAt: later });
  });
});

describe('a person to delete', () => {
  const mapped = provider({ wanted: false, platformUserId: 'u1', origin: 'created' });

  test('has its platform user deleted, even if it needed review', () => {
    expect(nextStep(mapped, context())).toMatchObject({ operation: 'deleteUser', state: 'deleting' });
    const missing = { ...mapped, review: 'platform-user-missing' as const };
    expect(nextStep(missing, context())).toMatchObject({ operation: 'deleteUser' });
  });

  test('is kept here and on the platform by a legal hold, regardless of other work', () => {
    const others: Partial<Person>[] = [
      ...[{}, { fault: 'rejected' } as const, { unsettled: unsettled('createClient') }],
      ...([{ review: 'delete-unconfirmed' }, { platformUserId: 'u1', origin: 'linked' }] as const),
    ];
    for (const more of others) {
      const step = nextStep(client({ wanted: false, ...more }), context({ held: true }));
      expect(step).toEqual(rest('deleting', 'legal-hold'));
    }
    const wanted = client({ platformUserId: 'u1', appliedProviders: [] });
    expect(nextStep(wanted, context({ held: true }))).toEqual(rest('synced'));
  });

  test('waits while a client’s list that is about to change still contains it', () => {
    expect(nextStep(mapped, context({ stillListed: true }))).toEqual(rest('deleting', 'clients-still-listed'));
  });

  test.each([client, provider])('needs review if found only by its email, until its role was reported', (kind) => {
    const linked = kind({ wanted: false, platformUserId: 'u9', origin: 'linked' });
    const review = rest('needs-review', 'delete-linked');
    expect(nextStep(linked, context())).toEqual(review);
    expect(nextStep({ ...linked, role: 'differs' }, context())).toEqual(review);
    expect(nextStep({ ...linked, role: 'fits' }, context())).toMatchObject({ operation: 'deleteUser' });
    expect(nextStep({ ...linked, origin: 'resolved' }, context())).toMatchObject({ operation: 'deleteUser' });
  });

  test('is preceded by a check of any email after a 404 that may come from another server', () => {
    const refused = (operation: Operation, code: number) => ({ ...mapped, refused: { operation, code, at: NOW } });
    const any = { operation: 'checkUser', subject: 'any', state: 'deleting' };
    expect(nextStep(refused('deleteUser', 404), context())).toMatchObject(any);
    expect(nextStep(refused('deleteUser', 403), context())).toMatchObject({ operation: 'deleteUser' });
    expect(nextStep(refused('setClientProviders', 404), context())).toMatchObject({ operation: 'deleteUser' });
  });

  test('that was not confirmed needs review until the EHR takes it back', () => {
    const doubted = { ...mapped, review: 'delete-unconfirmed' as const };
    expect(nextStep(doubted, context())).toEqual(rest('needs-review', 'delete-unconfirmed'));
    expect(nextStep({ ...doubted, wanted: true }, context())).toEqual(rest('synced'));
  });

  test('that the EHR wants again after a deletion without an answer is deleted first, unless that is not confirmed', () => {
    const revived = { ...mapped, wanted: true, unsettled: unsettled('deleteUser') };
    expect(nextStep(revived, context())).toMatchObject({ operation: 'deleteUser', state: 'pending' });
    const doubted = { ...revived, review: 'delete-unconfirmed' as const };
    expect(nextStep(doubted, context())).toEqual(rest('needs-review', 'delete-unconfirmed'));
  });
});

test('a changed name or email of a mirrored person needs no call, because the platform has none', () => {
  const changed = provider({ platformUserId: 'u1', email: 'b2' });
  expect(nextStep(changed, context({ claim: 'taken' }))).toEqual(rest('synced'));
});

test('a person with a call in flight is looked at again when the call has surely ended', () => {
  const call = { id: '1', operation: 'checkUser' as const, version: 1, lookUpAt: later };
  const step = { do: 'rest', state: 'waiting', code: null } as const;
  expect(dueAtOf({ call }, step)).toEqual(later);
  expect(dueAtOf({ call: null }, step)).toBeNull();
});

test('only a check is sent while sending is held', () => {
  expect((['checkUser', 'createClient', 'setClientProviders', 'deleteUser'] as const).map(isReading)).toEqual([
    ...[true, false, false, false],
  ]);
});
