import { newcomer } from '../reconcile/newcomer.spec-support.js';
import { CHECK_FRESH_MS, nextStep } from './next-step.js';
import type { Attempt, DecisionContext, Operation, Person } from './person.js';

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
  answersMissing: false,
  stillListed: false,
  ...more,
});
const named = (...ids: (string | null)[]) => ({
  providers: ids.map((platformUserId, n) => ({ externalId: `p${n}`, platformUserId })),
});
const rest = (state: string, code: string | null = null, until: Date | null = null) => ({
  do: 'rest',
  state,
  code,
  until,
});

describe('on the way to the platform', () => {
  test('an email is claimed before it is spoken about', () => {
    expect(nextStep(provider(), context({ claim: 'free' }))).toEqual({ do: 'claim-email' });
  });

  test('whoever can not claim its email is left for review without a call', () => {
    expect(nextStep(provider(), context({ claim: 'taken' }))).toEqual(rest('needs-review', 'email-taken'));
  });

  test('a person with an email is checked before it is created', () => {
    expect(nextStep(provider(), context())).toMatchObject({ operation: 'checkUser', subject: 'wanted' });
    expect(nextStep(provider({ checkedAbsentAt: now }), context())).toMatchObject({ operation: 'createProvider' });
  });

  test('a check that is too old is made again', () => {
    const checkedAbsentAt = new Date(now.getTime() - CHECK_FRESH_MS);
    expect(nextStep(provider({ checkedAbsentAt }), context())).toMatchObject({ operation: 'checkUser' });
  });

  test('a client without an email is created at once, by its primary alone', () => {
    const step = nextStep(client(), context(named('u1', 'u2')));
    expect(step).toMatchObject({ operation: 'createClient', providerUserIds: ['u1'] });
  });

  test('while the platform gives no answers, a create without an email waits for a check that is answered', () => {
    const silent = context({ ...named('u1'), answersMissing: true });
    expect(nextStep(client(), silent)).toMatchObject({ operation: 'checkUser', subject: 'primary' });
    const findable = client({ email: 'a1', checkedAbsentAt: now });
    expect(nextStep(findable, silent)).toMatchObject({ operation: 'createClient' });
  });

  test('a client waits until each of its providers is mirrored', () => {
    const waiting = rest('waiting', 'provider-not-mirrored');
    expect(nextStep(client(), context(named(null, 'u2')))).toEqual(waiting);
    expect(nextStep(client(), context(named('u1', null)))).toEqual(waiting);
    expect(nextStep(client({ platformUserId: 'u9' }), context(named('u1', null)))).toEqual(waiting);
  });

  test('after a transient fault the same call may leave, but not before its time', () => {
    expect(nextStep(provider({ retryAt: later, failures: 1 }), context())).toMatchObject({ notBefore: later });
  });

  test('a fault stops everything until somebody changes something', () => {
    expect(nextStep(provider({ fault: 'rejected' }), context())).toEqual(rest('failed', 'rejected'));
    const unwanted = provider({ fault: 'forbidden', wanted: false, platformUserId: 'u1' });
    expect(nextStep(unwanted, context())).toEqual(rest('failed', 'forbidden'));
  });
});

describe('when a create got no answer', () => {
  const unknown = provider({ attempt: attempt('createProvider') });

  test('nothing is asked before the platform can no longer commit late', () => {
    expect(nextStep(unknown, context())).toEqual(rest('pending', 'outcome-unknown', later));
  });

  test('then a check by the email that was sent tells, whatever email is wanted now and whoever holds it', () => {
    const step = nextStep({ ...unknown, email: 'b2' }, context({ now: later, claim: 'taken' }));
    expect(step).toMatchObject({ operation: 'checkUser', subject: 'attempted' });
  });

  test('without an email a person must decide, but not while the call is under way', () => {
    const blind = client({ attempt: attempt('createClient', { email: null }) });
    expect(nextStep(blind, context(named('u1')))).toEqual(rest('pending', 'outcome-unknown', later));
    expect(nextStep(blind, context({ ...named('u1'), now: later }))).toEqual(rest('needs-review', 'create-unknown'));
  });

  test('deleted meanwhile: with an email it is looked up, without one a person must decide', () => {
    const gone = { ...unknown, wanted: false };
    expect(nextStep(gone, context())).toEqual(rest('deleting', 'outcome-unknown', later));
    expect(nextStep(gone, context({ now: later }))).toMatchObject({ operation: 'checkUser', subject: 'attempted' });
    const blind = client({ wanted: false, attempt: attempt('createClient', { email: null }) });
    expect(nextStep(blind, context({ now: later }))).toEqual(rest('needs-review', 'delete-unknown'));
  });

  test('nobody is checked and deleted for whom no create was ever attempted', () => {
    expect(nextStep(provider({ wanted: false }), context())).toEqual(rest('deleted'));
    expect(nextStep(provider({ wanted: false, checkedAbsentAt: now }), context())).toEqual(rest('deleted'));
  });
});

describe('a client’s list', () => {
  const mapped = client({ platformUserId: 'u9', appliedProviders: ['u1', 'u2'] });

  test('is replaced as a whole when it differs from what was applied, also in order', () => {
    expect(nextStep(mapped, context(named('u1', 'u2')))).toEqual(rest('synced'));
    expect(nextStep(mapped, context(named('u2', 'u1')))).toMatchObject({
      operation: 'setClientProviders',
      providerUserIds: ['u2', 'u1'],
    });
  });

  test('is sent when it is not known', () => {
    const linked = { ...mapped, appliedProviders: null };
    expect(nextStep(linked, context(named('u1', 'u2')))).toMatchObject({ operation: 'setClientProviders' });
  });

  test('is sent once more when an earlier one without an answer can no longer come over it', () => {
    const doubtful = { ...mapped, attempt: attempt('setClientProviders') };
    expect(nextStep(doubtful, context(named('u1', 'u2')))).toEqual(rest('synced', null, later));
    const step = nextStep(doubtful, context({ ...named('u1', 'u2'), now: later }));
    expect(step).toMatchObject({ operation: 'setClientProviders' });
  });
});

describe('on the way out', () => {
  const mapped = provider({ wanted: false, platformUserId: 'u1' });

  test('a user of the platform is deleted', () => {
    expect(nextStep(mapped, context())).toMatchObject({ operation: 'deleteUser', state: 'deleting' });
  });

  test('a provider stays while a client’s list still holds it and is about to change', () => {
    expect(nextStep(mapped, context({ stillListed: true }))).toEqual(rest('deleting', 'clients-still-listed'));
  });

  test('a client that was linked by its email alone, of unknown role, is not deleted by itself', () => {
    const linked = client({ wanted: false, platformUserId: 'u9', roleKnown: false });
    expect(nextStep(linked, context())).toEqual(rest('needs-review', 'delete-linked'));
    expect(nextStep({ ...linked, roleKnown: true }, context())).toMatchObject({ operation: 'deleteUser' });
    const clinician = provider({ wanted: false, platformUserId: 'u9', roleKnown: false });
    expect(nextStep(clinician, context())).toMatchObject({ operation: 'deleteUser' });
  });

  test('a review does not keep a person', () => {
    const step = nextStep({ ...mapped, review: 'platform-user-missing' }, context());
    expect(step).toMatchObject({ operation: 'deleteUser' });
  });

  test('wanted again after a delete without an answer: the delete is seen through first', () => {
    const revived = { ...mapped, wanted: true, attempt: attempt('deleteUser', { lookUpAt: earlier }) };
    expect(nextStep(revived, context())).toMatchObject({ operation: 'deleteUser', state: 'pending' });
  });
});

test('a changed name or email of somebody mirrored asks for no call: the platform has none for it', () => {
  expect(nextStep(provider({ platformUserId: 'u1', email: 'b2' }), context({ claim: 'taken' }))).toEqual(
    rest('synced'),
  );
});
