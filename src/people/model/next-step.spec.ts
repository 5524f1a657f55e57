import { type Breaker, breakerOf } from './circuit-breaker.js';
import { newcomer } from './newcomer.spec-support.js';
import { CHECK_FRESH_MS, isRestoredUnknown, nextStep } from './next-step.js';
import { type Attempt, type DecisionContext, type Operation, type Person, RESTORED_CALL } from './person.js';
import { applyResolve } from './resolve-rule.js';

const now = new Date('2026-11-21T05:00:00Z');
const later = new Date(now.getTime() + 60_000);
const earlier = new Date(now.getTime() - 1);

const provider = (more: Partial<Person> = {}): Person => ({ ...newcomer('provider'), email: 'a1', ...more });
const client = (more: Partial<Person> = {}): Person => ({ ...newcomer('client'), ...more });
const attempt = (operation: Operation, more: Partial<Attempt> = {}): Attempt => ({
  callId: '1',
  operation,
  email: 'a1',
  lookUpAt: later,
  ...more,
});
const context = (more: Partial<DecisionContext> = {}): DecisionContext => ({
  now,
  claim: 'held',
  providers: [],
  held: false,
  stillListed: false,
  role: null,
  hasSecondUser: false,
  restored: false,
  breakers: {},
  base: 'base',
  ...more,
});
const named = (...ids: (string | null)[]) => ({
  providers: ids.map((platformUserId, n) => ({ externalId: `p${n}`, platformUserId })),
});
/** A breaker that is open because nothing readable came back. */
const SILENT = { ...breakerOf({}, 'createClient'), failedAt: 1, block: { code: 'platform-fault' } as Breaker['block'] };

const rest = (state: string, code: string | null = null, until: Date | null = null) => ({
  do: 'rest',
  state,
  code,
  until,
});

describe('a person to create', () => {
  test('claims its email before any call with it', () => {
    expect(nextStep(provider(), context({ claim: 'free' }))).toEqual({ do: 'claim-email' });
  });

  test('needs review without a call if it cannot claim its email', () => {
    expect(nextStep(provider(), context({ claim: 'taken' }))).toEqual(rest('needs-review', 'email-taken'));
  });

  test('with an email is looked up before it is created', () => {
    expect(nextStep(provider(), context())).toMatchObject({ operation: 'checkUser', subject: 'wanted' });
    expect(nextStep(provider({ checkedAbsentAt: now }), context())).toMatchObject({ operation: 'createProvider' });
  });

  test('is looked up again if the last check is too old', () => {
    const checkedAbsentAt = new Date(now.getTime() - CHECK_FRESH_MS);
    expect(nextStep(provider({ checkedAbsentAt }), context())).toMatchObject({ operation: 'checkUser' });
    const recently = new Date(now.getTime() - 599_999);
    expect(nextStep(provider({ checkedAbsentAt: recently }), context())).toMatchObject({ operation: 'createProvider' });
  });

  test('is pending while it is checked and created', () => {
    const pending = { do: 'call', state: 'pending', notBefore: null };
    const checked = { checkedAbsentAt: now };
    const silent = context({ ...named('u1'), breakers: { createClient: SILENT } });
    expect(nextStep(provider(), context())).toMatchObject(pending);
    expect(nextStep(provider(checked), context())).toMatchObject(pending);
    expect(nextStep(client(), context(named('u1')))).toMatchObject(pending);
    expect(nextStep(client(), silent)).toMatchObject(pending);
  });

  test('makes no call while it needs review', () => {
    const step = nextStep(client({ review: 'role-mismatch' }), context(named('u1')));
    expect(step).toEqual(rest('needs-review', 'role-mismatch'));
  });

  test('without an email is created immediately, with only its primary', () => {
    const step = nextStep(client(), context(named('u1', 'u2')));
    expect(step).toMatchObject({ operation: 'createClient', providerUserIds: ['u1'] });
    for (const claim of ['free', 'taken'] as const)
      expect(nextStep(client(), context({ ...named('u1', 'u2'), claim }))).toEqual(step);
  });

  test('without an email waits for an answered check while the platform gives no answers', () => {
    const silent = context({ ...named('u1'), breakers: { createClient: SILENT } });
    expect(nextStep(client(), silent)).toMatchObject({ operation: 'checkUser', subject: 'any' });
    const findable = client({ email: 'a1', checkedAbsentAt: now });
    expect(nextStep(findable, silent)).toMatchObject({ operation: 'createClient' });
  });

  test('waits until all its providers are mirrored', () => {
    const waiting = rest('waiting', 'provider-not-mirrored');
    expect(nextStep(client(), context(named(null, 'u2')))).toEqual(waiting);
    expect(nextStep(client(), context(named('u1', null)))).toEqual(waiting);
    expect(nextStep(client({ platformUserId: 'u9' }), context(named('u1', null)))).toEqual(waiting);
  });

  test('repeats a call after a transient fault, but not before its retry time', () => {
    expect(nextStep(provider({ retryAt: later, failures: 1 }), context())).toMatchObject({ notBefore: later });
  });

  test('stays failed while a rejected call is repeated', () => {
    const refusal = { operation: 'createProvider', kind: 'rejected', at: now, count: 1 } as const;
    const step = nextStep(provider({ refusal, retryAt: later }), context());
    expect(step).toMatchObject({ operation: 'checkUser', state: 'failed', notBefore: later });
  });

  test('makes no call while it has a fault', () => {
    expect(nextStep(provider({ fault: 'rejected' }), context())).toEqual(rest('failed', 'rejected'));
    const unwanted = provider({ fault: 'forbidden', wanted: false, platformUserId: 'u1' });
    expect(nextStep(unwanted, context())).toEqual(rest('failed', 'forbidden'));
  });
});

describe('a client without an email in a database that may be a restored backup', () => {
  const restored = context({ ...named('u1'), restored: true });
  const unknown = rest('needs-review', 'restored-unknown');
  const mark = { callId: RESTORED_CALL, operation: 'createClient', email: null, lookUpAt: now } as const;

  test('needs review, also while its provider is not mirrored', () => {
    expect(nextStep(client(), restored)).toEqual(unknown);
    expect(nextStep(client(), context({ ...named(null), restored: true }))).toEqual(unknown);
  });

  test('is created once an operator has looked on the platform', () => {
    const resolved = applyResolve(client(), 'create', restored);
    expect(nextStep(resolved, restored)).toMatchObject({ operation: 'createClient' });
  });

  test('still needs review after a retry', () => {
    expect(nextStep(applyResolve(client(), 'retry', restored), restored)).toEqual(unknown);
    const marked = client({ attempt: mark });
    expect(nextStep(applyResolve(marked, 'retry', restored), context(named('u1')))).toEqual(unknown);
  });

  test('with a mark needs review after the release, until an operator decides', () => {
    const released = context(named('u1'));
    expect(nextStep(client({ attempt: mark }), released)).toEqual(unknown);
    expect(nextStep(client({ attempt: mark, wanted: false }), released)).toEqual(
      rest('needs-review', 'delete-unknown'),
    );
    expect(nextStep(applyResolve(client({ attempt: mark }), 'create', released), released)).toMatchObject({
      operation: 'createClient',
    });
  });

  test('is not meant if it has an email or a user, or is a provider', () => {
    expect(nextStep(client({ email: 'a1' }), restored)).toMatchObject({ operation: 'checkUser' });
    expect(nextStep(provider(), restored)).toMatchObject({ operation: 'checkUser' });
    expect(nextStep(client({ platformUserId: 'u9' }), restored)).toMatchObject({ operation: 'setClientProviders' });
    for (const other of [provider({ email: null }), client({ platformUserId: 'u9' }), client({ attempt: mark })])
      expect(isRestoredUnknown(other, restored)).toBe(false);
  });
});

describe('a create without an answer', () => {
  const unknown = provider({ attempt: attempt('createProvider') });

  test('is not looked up while the platform may still commit late', () => {
    expect(nextStep(unknown, context())).toEqual(rest('pending', 'outcome-unknown', later));
  });

  test('is looked up by the email that was sent, regardless of the current email and its claim', () => {
    const step = nextStep({ ...unknown, email: 'b2' }, context({ now: later, claim: 'taken' }));
    expect(step).toMatchObject({ operation: 'checkUser', subject: 'attempted' });
  });

  test('needs review without an email, but not while the call is in flight', () => {
    const blind = client({ attempt: attempt('createClient', { email: null }) });
    expect(nextStep(blind, context(named('u1')))).toEqual(rest('pending', 'outcome-unknown', later));
    expect(nextStep(blind, context({ ...named('u1'), now: later }))).toEqual(rest('needs-review', 'create-unknown'));
  });

  test('of a person deleted since then is looked up, or needs review without an email', () => {
    const gone = { ...unknown, wanted: false };
    expect(nextStep(gone, context())).toEqual(rest('deleting', 'outcome-unknown', later));
    expect(nextStep(gone, context({ now: later }))).toMatchObject({ operation: 'checkUser', subject: 'attempted' });
    const blind = client({ wanted: false, attempt: attempt('createClient', { email: null }) });
    expect(nextStep(blind, context({ now: later }))).toEqual(rest('needs-review', 'delete-unknown'));
  });

  test('is required to look up a deleted person', () => {
    expect(nextStep(provider({ wanted: false }), context())).toEqual(rest('deleted'));
    expect(nextStep(provider({ wanted: false, checkedAbsentAt: now }), context())).toEqual(rest('deleted'));
  });
});

describe('a client’s list', () => {
  const mapped = client({ platformUserId: 'u9', appliedProviders: ['u1', 'u2'] });

  test('is replaced as a whole if it differs from the applied list, even only in order', () => {
    expect(nextStep(mapped, context(named('u1', 'u2')))).toEqual(rest('synced'));
    expect(nextStep(mapped, context(named('u2', 'u1')))).toMatchObject({
      operation: 'setClientProviders',
      state: 'pending',
      providerUserIds: ['u2', 'u1'],
    });
    expect(nextStep(mapped, context(named('u1', 'u2', 'u3')))).toMatchObject({ operation: 'setClientProviders' });
  });

  test('is sent if the list on the platform is unknown', () => {
    const linked = { ...mapped, appliedProviders: null };
    expect(nextStep(linked, context(named('u1', 'u2')))).toMatchObject({ operation: 'setClientProviders' });
  });

  test('is sent again once an earlier list without an answer can no longer replace it', () => {
    const unsettled = { ...mapped, attempt: attempt('setClientProviders') };
    expect(nextStep(unsettled, context(named('u1', 'u2')))).toEqual(rest('synced', null, later));
    const step = nextStep(unsettled, context({ ...named('u1', 'u2'), now: later }));
    expect(step).toMatchObject({ operation: 'setClientProviders' });
  });
});

describe('a person to delete', () => {
  test('is kept here and on the platform by a legal hold, regardless of other work', () => {
    const faults: Partial<Person>[] = [
      {},
      { fault: 'rejected' },
      { attempt: attempt('createClient') },
      { review: 'delete-linked' },
    ];
    for (const more of [...faults, { platformUserId: 'u1', origin: 'linked' } as const])
      expect(nextStep(client({ wanted: false, ...more }), context({ held: true }))).toEqual(
        rest('deleting', 'legal-hold'),
      );
    expect(
      nextStep(client({ platformUserId: 'u1', origin: 'created', appliedProviders: [] }), context({ held: true })),
    ).toEqual(rest('synced'));
  });

  const mapped = provider({ wanted: false, platformUserId: 'u1' });

  test('has its platform user deleted', () => {
    expect(nextStep(mapped, context())).toMatchObject({ operation: 'deleteUser', state: 'deleting' });
  });

  test('waits while a client’s list that is about to change still contains it', () => {
    expect(nextStep(mapped, context({ stillListed: true }))).toEqual(rest('deleting', 'clients-still-listed'));
  });

  test.each([client, provider])('needs review if linked only by its email, until its role was reported', (kind) => {
    const linked = kind({ wanted: false, platformUserId: 'u9', origin: 'linked' });
    const review = rest('needs-review', 'delete-linked');
    expect(nextStep(linked, context())).toEqual(review);
    expect(nextStep(linked, context({ role: 'differs' }))).toEqual(review);
    expect(nextStep(linked, context({ role: 'fits' }))).toMatchObject({ operation: 'deleteUser' });
    expect(nextStep({ ...linked, origin: 'resolved' }, context())).toMatchObject({ operation: 'deleteUser' });
  });

  test('needs review while the platform has a second user with its external id', () => {
    expect(nextStep(mapped, context({ hasSecondUser: true }))).toEqual(rest('needs-review', 'platform-user-taken'));
  });

  test('is preceded by a check after a 404 that may come from a wrong URL', () => {
    const refusal = { operation: 'deleteUser', kind: 'doubtful', at: now, count: 1 } as const;
    const doubted = { ...mapped, refusal };
    expect(nextStep(doubted, context())).toMatchObject({ operation: 'checkUser', subject: 'any', state: 'deleting' });
    const checkUser = { ...breakerOf({}, 'checkUser'), succeededAt: now.getTime(), base: 'base' };
    expect(nextStep(doubted, context({ breakers: { checkUser } }))).toMatchObject({ operation: 'deleteUser' });
    const elsewhere = { ...mapped, refusal: { ...refusal, operation: 'setClientProviders' } as const };
    expect(nextStep(elsewhere, context())).toMatchObject({ operation: 'deleteUser' });
  });

  test('is deleted although it needed review', () => {
    const step = nextStep({ ...mapped, review: 'platform-user-missing' }, context());
    expect(step).toMatchObject({ operation: 'deleteUser' });
  });

  test('that the EHR wants again after a delete without an answer is deleted first', () => {
    const revived = { ...mapped, wanted: true, attempt: attempt('deleteUser', { lookUpAt: earlier }) };
    expect(nextStep(revived, context())).toMatchObject({ operation: 'deleteUser', state: 'pending' });
  });
});

test('a changed name or email of a mirrored person needs no call, because the platform has none', () => {
  expect(nextStep(provider({ platformUserId: 'u1', email: 'b2' }), context({ claim: 'taken' }))).toEqual(
    rest('synced'),
  );
});
