import { type Answer, applyAnswer, applyGrant, isFinalRejection, secondUserOf } from './apply-answer.js';
import { newcomer } from './newcomer.spec-support.js';
import type { CallStep } from './next-step.js';
import { assignableUser, type Operation, type Person } from './person.js';

const now = new Date('2026-11-21T05:00:00Z');
const lookUpAt = new Date(now.getTime() + 60_000);
const retryAt = new Date(now.getTime() + 1_000);

const unmapped: Person = { ...newcomer('client'), email: 'a1' };
const mirrored: Person = { ...unmapped, platformUserId: 'u9', appliedProviders: ['u1'] };
const step = (operation: Operation, more: Partial<CallStep> = {}): CallStep => ({
  do: 'call',
  operation,
  state: 'pending',
  notBefore: null,
  ...more,
});
const check = step('checkUser', { subject: 'wanted' });
const create = step('createClient', { providerUserIds: ['u1'] });
const setList = step('setClientProviders', { providerUserIds: ['u1', 'u2'] });
const remove = step('deleteUser');

const granted = (person: Person, call: CallStep, callId = '1') => applyGrant(person, call, { callId, now, lookUpAt });
const answered = (
  person: Person,
  call: CallStep,
  answer: Answer,
  more: Partial<Parameters<typeof applyAnswer>[3]> = {},
) => applyAnswer(person, call, answer, { callId: '1', now, lookUpAt, retryAt, outdated: false, ...more });

describe('before a call is sent', () => {
  test('records a create with its email, and clears the check', () => {
    const left = granted({ ...unmapped, checkedAbsentAt: now }, create);
    expect(left.attempt).toEqual({ callId: '1', operation: 'createClient', email: 'a1', lookUpAt });
    expect(left.checkedAbsentAt).toBeNull();
  });

  test('forgets the list that it replaces; a provider being deleted is no longer assignable', () => {
    expect(granted(mirrored, setList).appliedProviders).toBeNull();
    expect(assignableUser({ ...mirrored, kind: 'provider' })).toBe('u9');
    expect(assignableUser(granted({ ...mirrored, kind: 'provider' }, remove))).toBeNull();
  });

  test('records nothing for a check', () => {
    expect(granted(unmapped, check)).toBe(unmapped);
  });
});

describe('an answer', () => {
  test('unknown to an earlier create does not change a later one', () => {
    const later = granted(unmapped, create, '2');
    expect(answered(later, create, { kind: 'unknown' }, { lookUpAt: retryAt })).toBe(later);
  });

  test('absent allows a create with the desired email', () => {
    expect(answered(unmapped, check, { kind: 'absent' })).toMatchObject({ checkedAbsentAt: now, attempt: null });
  });

  test('exists links the user, with an unknown list', () => {
    const found = answered(unmapped, check, { kind: 'exists', userId: 'u7', heldByAnother: false, role: null });
    expect(found).toMatchObject({ platformUserId: 'u7', appliedProviders: null });
  });

  test('created maps the user, with a list of only the primary', () => {
    const made = answered(granted(unmapped, create), create, { kind: 'created', userId: 'u7', heldByAnother: false });
    expect(made).toMatchObject({ platformUserId: 'u7', appliedProviders: ['u1'], attempt: null });
  });

  test('with a user that is mapped to another person needs review', () => {
    const found = answered(unmapped, check, { kind: 'exists', userId: 'u7', heldByAnother: true, role: null });
    expect(found).toMatchObject({ platformUserId: null, review: 'platform-user-taken' });
  });

  test.each<Answer>([{ kind: 'deleted' }, { kind: 'not-found' }])('%j completes a delete', (answer) => {
    expect(answered(granted(mirrored, remove), remove, answer)).toMatchObject({ platformUserId: null, attempt: null });
  });

  test('not-found to a list needs review', () => {
    const missing = answered(granted(mirrored, setList), setList, { kind: 'not-found' });
    expect(missing).toMatchObject({ review: 'platform-user-missing', platformUserId: 'u9', attempt: null });
  });

  test.each<Answer>([
    { kind: 'rejected', isFinal: true },
    { kind: 'forbidden' },
    { kind: 'stopped' },
    { kind: 'rate-limited' },
    { kind: 'not-sent' },
    { kind: 'unreachable' },
  ])('%j to a create leaves no attempt, because it had no effect', (answer) => {
    expect(answered(granted(unmapped, create), create, answer).attempt).toBeNull();
  });

  test('ends the backoff if successful; an answer that stops everyone is no fault of the person', () => {
    const failing = { ...mirrored, failures: 3, retryAt };
    expect(answered(granted(failing, setList), setList, { kind: 'applied' })).toMatchObject({
      failures: 0,
      retryAt: null,
    });
    expect(answered(failing, check, { kind: 'stopped' })).toMatchObject({ failures: 3, fault: null });
    expect(answered(failing, check, { kind: 'unreachable' })).toMatchObject({ failures: 4, retryAt });
  });
});

describe('an unknown outcome', () => {
  const unknown: Answer = { kind: 'unknown' };

  test('of a create is looked up after the grace period, by the email that was sent', () => {
    const left = granted(unmapped, create);
    const after = answered({ ...left, email: 'b2' }, create, unknown, { lookUpAt: retryAt, outdated: true });
    expect(after.attempt).toMatchObject({ email: 'a1', lookUpAt: retryAt });
  });

  test('of a create without an email needs review immediately', () => {
    const left = granted({ ...unmapped, email: null }, create);
    expect(answered(left, create, unknown).attempt).toMatchObject({ email: null, lookUpAt: now });
  });

  test('of a list leaves it unknown and retries it', () => {
    const after = answered(granted(mirrored, setList), setList, unknown);
    expect(after).toMatchObject({ appliedProviders: null, retryAt, failures: 1 });
    expect(after.attempt).toMatchObject({ operation: 'setClientProviders', lookUpAt });
  });

  test('of a list is not settled by the answer to a later list', () => {
    const unsure = answered(granted(mirrored, setList, '1'), setList, unknown, { callId: '1' });
    const after = answered(granted(unsure, setList, '2'), setList, { kind: 'applied' }, { callId: '2' });
    expect(after).toMatchObject({ appliedProviders: ['u1', 'u2'], attempt: { callId: '1' } });
  });

  test('of a delete stays open until a delete is answered, even if a later one was not sent', () => {
    const unsure = answered(granted(mirrored, remove, '1'), remove, unknown, { callId: '1' });
    const after = answered(granted(unsure, remove, '2'), remove, { kind: 'rate-limited' }, { callId: '2' });
    expect(after).toMatchObject({ platformUserId: 'u9', attempt: { operation: 'deleteUser', callId: '1' } });
  });

  test('is not assumed for a rate-limited delete: the client stays, and its list is sent again', () => {
    const after = answered(granted(mirrored, remove), remove, { kind: 'rate-limited' });
    expect(after).toMatchObject({ platformUserId: 'u9', appliedProviders: null });
    expect(after.attempt?.operation).toBe('setClientProviders');
  });
});

describe('after the EHR changed the person during the call', () => {
  const outdated = { outdated: true };

  test('a user found by the old email is neither linked nor, later, deleted', () => {
    const found: Answer = { kind: 'exists', userId: 'u7', heldByAnother: false, role: null };
    expect(answered({ ...unmapped, email: 'b2' }, check, found, outdated).platformUserId).toBeNull();
    expect(answered({ ...unmapped, wanted: false }, check, found, outdated).platformUserId).toBeNull();
  });

  test('the absence of the old email does not count for the new one', () => {
    expect(answered({ ...unmapped, email: 'b2' }, check, { kind: 'absent' }, outdated).checkedAbsentAt).toBeNull();
  });

  test('a rejection of the old data does not fail the new data', () => {
    const rejected: Answer = { kind: 'rejected', isFinal: true };
    expect(answered(granted(unmapped, create), create, rejected, outdated).fault).toBeNull();
    expect(answered(granted(unmapped, create), create, rejected).fault).toBe('rejected');
    const first = answered(granted(unmapped, create), create, { kind: 'rejected', isFinal: false }, outdated);
    expect(first).toMatchObject({ refusal: null, retryAt: null });
  });

  test('a successful create is kept, because the user now exists on the platform', () => {
    const made: Answer = { kind: 'created', userId: 'u7', heldByAnother: false };
    const after = answered({ ...granted(unmapped, create), wanted: false }, create, made, outdated);
    expect(after).toMatchObject({ platformUserId: 'u7', wanted: false });
  });
});

test('a found user of another role is not linked and needs review', () => {
  const found = (role: 'fits' | 'differs' | null) =>
    answered(unmapped, check, { kind: 'exists', userId: 'u9', heldByAnother: false, role });
  expect(found('differs')).toMatchObject({ platformUserId: null, review: 'role-mismatch' });
  expect(found('fits')).toMatchObject({ platformUserId: 'u9', origin: 'linked' });
  expect(found(null)).toMatchObject({ platformUserId: 'u9', origin: 'linked' });
});

test('the late answer to a create keeps the user that an event linked, and names the other one', () => {
  const linked = { ...unmapped, platformUserId: 'u1' };
  const answer: Answer = { kind: 'created', userId: 'u2', heldByAnother: false };
  expect(answered(linked, create, answer)).toMatchObject({ platformUserId: 'u1', review: null });
  expect(secondUserOf(linked, create, answer)).toBe('u2');
  expect(secondUserOf(linked, create, { ...answer, userId: 'u1' })).toBeUndefined();
  expect(secondUserOf(unmapped, create, answer)).toBeUndefined();
});

test('a rejection is retried after 15 s, 2 min, 15 min, then hourly, and is final after a day', () => {
  const rejected: Answer = { kind: 'rejected', isFinal: false };
  let person = unmapped;
  const waits: number[] = [];
  while (!isFinalRejection(person.refusal, false, false)) {
    person = answered(granted(person, create), create, rejected);
    waits.push(((person.retryAt?.getTime() ?? 0) - now.getTime()) / 1_000);
  }
  expect(waits).toEqual([15, 120, 900, ...Array(24).fill(3_600)]);
  expect(isFinalRejection(person.refusal, false, true)).toBe(false);
  expect(isFinalRejection(null, true, false)).toBe(true);
});

test('a lost create is repeated only after the wait that a transient fault of that number causes', () => {
  const lookUp = step('checkUser', { subject: 'attempted' });
  let person = unmapped;
  for (let lost = 1; lost <= 20; lost++) {
    person = answered(granted(person, create), create, { kind: 'unknown' });
    expect(person.failures).toBe(lost);
    person = answered(person, lookUp, { kind: 'absent' });
    expect(person.retryAt).toEqual(retryAt);
    // Another check, because the first one expires during the wait, does not reset the count.
    person = answered(person, check, { kind: 'absent' });
  }
  expect(person.review).toBeNull();
});

test('a check that finds the user of a rejected create ends the rejection', () => {
  const once = answered(granted(unmapped, create), create, { kind: 'rejected', isFinal: false });
  expect(once).toMatchObject({ attempt: null, checkedAbsentAt: null, refusal: { kind: 'rejected', count: 1 } });
  expect(answered(once, check, { kind: 'absent' }).refusal).toEqual(once.refusal);
  const found: Answer = { kind: 'exists', userId: 'u9', heldByAnother: false, role: null };
  expect(answered(once, check, found)).toMatchObject({ platformUserId: 'u9', refusal: null });
});

test('a lookup never overwrites another user that an event linked during the call', () => {
  const lookUp = step('checkUser', { subject: 'attempted' });
  const linked = { ...unmapped, platformUserId: 'u1' };
  const found = (userId: string, heldByAnother = false, role: 'differs' | null = null) =>
    answered(linked, lookUp, { kind: 'exists', userId, heldByAnother, role });
  expect(found('u2')).toEqual(linked);
  expect(found('u1')).toEqual(linked);
  expect(found('u2', true)).toEqual(linked);
  expect(found('u2', false, 'differs')).toEqual(linked);
});

test.each<Answer>([
  { kind: 'absent' },
  { kind: 'rejected', isFinal: false },
  { kind: 'forbidden' },
  { kind: 'exists', userId: 'u1', heldByAnother: true, role: 'fits' },
])('the answer %j to a check of any email does not change the person', (answer) => {
  const client: Person = { ...unmapped, email: null };
  const after = answered(client, step('checkUser', { subject: 'any' }), answer);
  expect(after).toMatchObject({ fault: null, platformUserId: null, review: null, checkedAbsentAt: null });
});

test('a create that never gets through backs off, although its checks are answered', () => {
  let person = unmapped;
  for (let tries = 1; tries <= 3; tries++) {
    person = answered(person, check, { kind: 'absent' });
    expect(person.retryAt).toBeNull();
    person = answered(granted(person, create), create, { kind: 'unreachable' });
    expect(person).toMatchObject({ failures: tries, retryAt, attempt: null });
  }
  expect(answered(person, create, { kind: 'created', userId: 'u9', heldByAnother: false }).failures).toBe(0);
});
