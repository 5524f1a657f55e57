import { newcomer } from '../reconcile/newcomer.spec-support.js';
import { type Answer, applyAnswer, applyGrant } from './apply-answer.js';
import type { CallStep } from './next-step.js';
import { listableUser, type Operation, type Person } from './person.js';

const now = new Date('2026-11-21T05:00:00Z');
const lookUpAt = new Date(now.getTime() + 60_000);
const retryAt = new Date(now.getTime() + 1_000);
const createAgainAt = new Date(now.getTime() + 2_000);

const nobody: Person = { ...newcomer('client'), email: 'a1' };
const mirrored: Person = { ...nobody, platformUserId: 'u9', appliedProviders: ['u1'] };
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
) =>
  applyAnswer(person, call, answer, { callId: '1', now, lookUpAt, retryAt, createAgainAt, outdated: false, ...more });

describe('before a call leaves', () => {
  test('a create is on record with the email that it sends, and its check is used up', () => {
    const left = granted({ ...nobody, checkedAbsentAt: now }, create);
    expect(left.attempt).toEqual({ callId: '1', operation: 'createClient', email: 'a1', lookUpAt });
    expect(left.checkedAbsentAt).toBeNull();
  });

  test('a list is not known any more, a deleted provider is not to be named any more', () => {
    expect(granted(mirrored, setList).appliedProviders).toBeNull();
    expect(listableUser({ ...mirrored, kind: 'provider' })).toBe('u9');
    expect(listableUser(granted({ ...mirrored, kind: 'provider' }, remove))).toBeNull();
  });

  test('a check leaves no mark', () => {
    expect(granted(nobody, check)).toBe(nobody);
  });
});

describe('what an answer settles', () => {
  test('unknown: an earlier create says nothing about the one that followed', () => {
    const later = granted(nobody, create, '2');
    expect(answered(later, create, { kind: 'unknown' }, { lookUpAt: retryAt })).toBe(later);
  });

  test('absent: the wanted email may be created', () => {
    expect(answered(nobody, check, { kind: 'absent' })).toMatchObject({ checkedAbsentAt: now, attempt: null });
  });

  test('exists: linked, and the list on the platform is not known', () => {
    const found = answered(nobody, check, { kind: 'exists', userId: 'u7', heldByAnother: false, role: null });
    expect(found).toMatchObject({ platformUserId: 'u7', appliedProviders: null });
  });

  test('created: the list on the platform is the primary alone', () => {
    const made = answered(granted(nobody, create), create, { kind: 'created', userId: 'u7', heldByAnother: false });
    expect(made).toMatchObject({ platformUserId: 'u7', appliedProviders: ['u1'], attempt: null });
  });

  test('a user who is mapped to another is left for review', () => {
    const found = answered(nobody, check, { kind: 'exists', userId: 'u7', heldByAnother: true, role: null });
    expect(found).toMatchObject({ platformUserId: null, review: 'platform-user-taken' });
  });

  test.each<Answer>([{ kind: 'deleted' }, { kind: 'not-found' }])('a delete is done: %j', (answer) => {
    expect(answered(granted(mirrored, remove), remove, answer)).toMatchObject({ platformUserId: null, attempt: null });
  });

  test('a list for a user whom the platform does not know is left for review', () => {
    const missing = answered(granted(mirrored, setList), setList, { kind: 'not-found' });
    expect(missing).toMatchObject({ review: 'platform-user-missing', platformUserId: 'u9', attempt: null });
  });

  test.each<Answer>([
    { kind: 'rejected' },
    { kind: 'forbidden' },
    { kind: 'refused-for-all' },
    { kind: 'rate-limited' },
    { kind: 'not-sent' },
    { kind: 'unreachable' },
  ])('a create that was certainly not done leaves no attempt: %j', (answer) => {
    expect(answered(granted(nobody, create), create, answer).attempt).toBeNull();
  });

  test('a success ends the back-off, a refusal for all does not count as a fault of the person', () => {
    const tired = { ...mirrored, failures: 3, retryAt };
    expect(answered(granted(tired, setList), setList, { kind: 'applied' })).toMatchObject({
      failures: 0,
      retryAt: null,
    });
    expect(answered(tired, check, { kind: 'refused-for-all' })).toMatchObject({ failures: 3, fault: null });
    expect(answered(tired, check, { kind: 'unreachable' })).toMatchObject({ failures: 4, retryAt });
  });
});

describe('when the outcome is not known', () => {
  const unknown: Answer = { kind: 'unknown' };

  test('a create is looked up after the grace, by the email that it sent', () => {
    const left = granted(nobody, create);
    const after = answered({ ...left, email: 'b2' }, create, unknown, { lookUpAt: retryAt, outdated: true });
    expect(after.attempt).toMatchObject({ email: 'a1', lookUpAt: retryAt });
  });

  test('a create without an email is a person’s to decide at once', () => {
    const left = granted({ ...nobody, email: null }, create);
    expect(answered(left, create, unknown).attempt).toMatchObject({ email: null, lookUpAt: now });
  });

  test('a list stays unknown and is tried again', () => {
    const after = answered(granted(mirrored, setList), setList, unknown);
    expect(after).toMatchObject({ appliedProviders: null, retryAt, failures: 1 });
    expect(after.attempt).toMatchObject({ operation: 'setClientProviders', lookUpAt });
  });

  test('a later list that is answered does not settle the earlier one', () => {
    const unsure = answered(granted(mirrored, setList, '1'), setList, unknown, { callId: '1' });
    const after = answered(granted(unsure, setList, '2'), setList, { kind: 'applied' }, { callId: '2' });
    expect(after).toMatchObject({ appliedProviders: ['u1', 'u2'], attempt: { callId: '1' } });
  });

  test('a delete stays open until one is answered, also when a later one was not sent', () => {
    const unsure = answered(granted(mirrored, remove, '1'), remove, unknown, { callId: '1' });
    const after = answered(granted(unsure, remove, '2'), remove, { kind: 'rate-limited' }, { callId: '2' });
    expect(after).toMatchObject({ platformUserId: 'u9', attempt: { operation: 'deleteUser', callId: '1' } });
  });

  test('a delete that was certainly not done leaves the client as it was, but its list is sent anew', () => {
    const after = answered(granted(mirrored, remove), remove, { kind: 'rate-limited' });
    expect(after).toMatchObject({ platformUserId: 'u9', appliedProviders: null });
    expect(after.attempt?.operation).toBe('setClientProviders');
  });
});

describe('when the EHR wanted something since the call left', () => {
  const outdated = { outdated: true };

  test('a user found by the old email is neither linked nor, later, deleted', () => {
    const found: Answer = { kind: 'exists', userId: 'u7', heldByAnother: false, role: null };
    expect(answered({ ...nobody, email: 'b2' }, check, found, outdated).platformUserId).toBeNull();
    expect(answered({ ...nobody, wanted: false }, check, found, outdated).platformUserId).toBeNull();
  });

  test('that the old email is unknown says nothing of the new one', () => {
    expect(answered({ ...nobody, email: 'b2' }, check, { kind: 'absent' }, outdated).checkedAbsentAt).toBeNull();
  });

  test('a refusal of the old data does not fail the new', () => {
    expect(answered(granted(nobody, create), create, { kind: 'rejected' }, outdated).fault).toBeNull();
    expect(answered(granted(nobody, create), create, { kind: 'rejected' }).fault).toBe('rejected');
  });

  test('a create that was done is kept all the same: somebody is on the platform now', () => {
    const made: Answer = { kind: 'created', userId: 'u7', heldByAnother: false };
    const after = answered({ ...granted(nobody, create), wanted: false }, create, made, outdated);
    expect(after).toMatchObject({ platformUserId: 'u7', wanted: false });
  });
});

test('a found user whose role the platform told otherwise is somebody else', () => {
  const found = (role: 'fits' | 'differs' | null) =>
    answered(nobody, check, { kind: 'exists', userId: 'u9', heldByAnother: false, role });
  expect(found('differs')).toMatchObject({ platformUserId: null, review: 'role-mismatch' });
  expect(found('fits')).toMatchObject({ platformUserId: 'u9', roleKnown: true });
  expect(found(null)).toMatchObject({ platformUserId: 'u9', roleKnown: false });
});

test('a create that made another user than the one that an event linked meanwhile never overwrites it', () => {
  const linked = { ...nobody, platformUserId: 'u1' };
  const answer: Answer = { kind: 'created', userId: 'u2', heldByAnother: false };
  expect(answered(linked, create, answer)).toMatchObject({ platformUserId: 'u1', review: 'second-user' });
  expect(answered(linked, create, { ...answer, userId: 'u1' })).toMatchObject({ platformUserId: 'u1', review: null });
});

test('a create that is lost again and again is tried ever more rarely, up to an hour, and then is a human being’s', () => {
  const lookUp = step('checkUser', { subject: 'attempted' });
  let person = nobody;
  for (let lost = 1; lost <= 13; lost++) {
    expect(person.review).toBeNull();
    person = answered(granted(person, create), create, { kind: 'unknown' });
    expect(person.lostCreates).toBe(lost);
    person = answered(person, lookUp, { kind: 'absent' });
    if (lost < 13) expect(person.retryAt).toEqual(createAgainAt);
    // A further check, since that one is too old by then, ends nothing.
    person = answered(person, check, { kind: 'absent' });
  }
  expect(person.review).toBe('create-unanswered');
});

test('a 409 to a create is followed by one more check, and a second one is the platform’s last word', () => {
  const conflict: Answer = { kind: 'conflict' };
  const once = answered(granted(nobody, create), create, conflict);
  expect(once).toMatchObject({ fault: null, conflicted: true, attempt: null, checkedAbsentAt: null });
  const found: Answer = { kind: 'exists', userId: 'u9', heldByAnother: false, role: null };
  expect(answered(once, check, found)).toMatchObject({ platformUserId: 'u9', conflicted: false, roleKnown: false });
  const absent = answered(once, check, { kind: 'absent' });
  expect(answered(granted(absent, create), create, conflict)).toMatchObject({ fault: 'rejected' });
});

test('a look-up that finds another user than the one that an event linked meanwhile never overwrites it', () => {
  const lookUp = step('checkUser', { subject: 'attempted' });
  const linked = { ...nobody, platformUserId: 'u1' };
  const found = (userId: string, heldByAnother = false, role: 'differs' | null = null) =>
    answered(linked, lookUp, { kind: 'exists', userId, heldByAnother, role });
  expect(found('u2')).toMatchObject({ platformUserId: 'u1', review: 'second-user' });
  expect(found('u1')).toEqual(linked);
  expect(found('u2', true)).toEqual(linked);
  expect(found('u2', false, 'differs')).toEqual(linked);
});

test.each(['absent', 'rejected', 'forbidden'] as const)(
  'what is said of a client’s primary provider (%s) tells that the platform answers, and nothing of the client',
  (kind) => {
    const client: Person = { ...nobody, email: null };
    expect(answered(client, step('checkUser', { subject: 'primary' }), { kind })).toMatchObject({
      fault: null,
      checkedAbsentAt: null,
    });
  },
);

test('a create that never gets through is tried ever more rarely, although the check before it is answered', () => {
  let person = nobody;
  for (let tries = 1; tries <= 3; tries++) {
    person = answered(person, check, { kind: 'absent' });
    expect(person.retryAt).toBeNull();
    person = answered(granted(person, create), create, { kind: 'unreachable' });
    expect(person).toMatchObject({ failures: tries, retryAt, attempt: null });
  }
  expect(answered(person, create, { kind: 'created', userId: 'u9', heldByAnother: false }).failures).toBe(0);
});
