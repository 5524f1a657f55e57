import { type Answer, applyAnswer, applyGrant, secondUserOf } from './apply-answer.js';
import { newcomer } from './newcomer.spec-support.js';
import type { CallStep } from './next-step.js';
import type { Attempt, Operation, Person, Refusal } from './person.js';

const now = new Date('2026-11-21T05:00:00Z');
const lookUpAt = new Date(now.getTime() + 60_000);
const retryAt = new Date(now.getTime() + 1_000);

const step = (operation: Operation, more: Partial<CallStep> = {}): CallStep => ({
  ...{ do: 'call', operation, state: 'pending', notBefore: null },
  ...more,
});
const lookUp = (subject: CallStep['subject']) => step('checkUser', subject && { subject });
const attempt = (operation: Operation, more: Partial<Attempt> = {}): Attempt => ({
  ...{ callId: '1', operation, email: 'a1', lookUpAt },
  ...more,
});
const refusal = (operation: Operation, kind: Refusal['kind']): Refusal => ({ operation, kind, at: now, count: 1 });

const client: Person = { ...newcomer('client'), email: 'a1' };
const mirrored: Person = { ...client, platformUserId: 'u9', origin: 'created', appliedProviders: ['u1'] };
const failing = { failures: 3, retryAt };

const granted = (person: Person, call: CallStep) => applyGrant(person, call, { callId: '2', now, lookUpAt });
const answered = (person: Person, call: CallStep, answer: Answer, outdated = false) =>
  applyAnswer(person, call, answer, { callId: '1', now, lookUpAt, retryAt, outdated });
const found = (more: Partial<Extract<Answer, { kind: 'exists' }>> = {}): Answer => ({
  ...{ kind: 'exists', userId: 'u7', heldByAnother: false, role: 'fits' },
  ...more,
});

describe('before a call is sent', () => {
  test('a create of a provider is recorded', () => {
    const left = granted({ ...newcomer('provider'), email: 'a1', checkedAbsentAt: now }, step('createProvider'));
    expect(left).toMatchObject({ attempt: attempt('createProvider', { callId: '2' }), checkedAbsentAt: null });
  });

  test('a list keeps the attempt of an earlier one only while that may take effect', () => {
    const earlier = (at: Date) => ({ ...mirrored, attempt: attempt('setClientProviders', { lookUpAt: at }) });
    expect(granted(earlier(retryAt), step('setClientProviders')).attempt).toMatchObject({ callId: '1', lookUpAt });
    expect(granted(earlier(now), step('setClientProviders')).attempt).toMatchObject({ callId: '2', lookUpAt });
  });

  test('a delete replaces the attempt of a list, not that of an earlier delete', () => {
    const left = (operation: Operation) => granted({ ...mirrored, attempt: attempt(operation) }, step('deleteUser'));
    expect(left('setClientProviders')).toMatchObject({ attempt: { callId: '2', operation: 'deleteUser' } });
    expect(left('deleteUser')).toMatchObject({ attempt: { callId: '1' }, appliedProviders: null });
  });
});

describe('a check', () => {
  const lost: Person = { ...client, ...failing, attempt: attempt('createClient', { callId: '0' }) };

  test('that does not find the email of a lost create counts for the same email only', () => {
    expect(answered(lost, lookUp('attempted'), { kind: 'absent' })).toMatchObject({
      ...{ attempt: null, checkedAbsentAt: now, failures: 3, retryAt },
    });
    const changed = { ...lost, email: 'b2' };
    expect(answered(changed, lookUp('attempted'), { kind: 'absent' }).checkedAbsentAt).toBeNull();
    expect(answered(changed, lookUp('wanted'), { kind: 'absent' }).checkedAbsentAt).toBe(now);
    expect(answered({ ...client, email: null }, lookUp(undefined), { kind: 'absent' }).checkedAbsentAt).toBeNull();
  });

  test('that does not find a lost create delays nothing for a person to delete, or without a failure', () => {
    expect(answered({ ...lost, wanted: false }, lookUp('attempted'), { kind: 'absent' }).retryAt).toBeNull();
    expect(answered({ ...lost, failures: 0 }, lookUp('attempted'), { kind: 'absent' }).retryAt).toBeNull();
    expect(answered(lost, lookUp('wanted'), { kind: 'absent' }).retryAt).toBeNull();
  });

  test('that finds the user of a lost create maps it as created, even if outdated', () => {
    const mapped = { platformUserId: 'u7', origin: 'created', attempt: null, failures: 0, retryAt: null };
    expect(answered(lost, lookUp('attempted'), found())).toMatchObject(mapped);
    expect(answered(lost, lookUp('attempted'), found(), true)).toMatchObject(mapped);
    expect(answered(client, lookUp('wanted'), found())).toMatchObject({ platformUserId: 'u7', origin: 'linked' });
  });

  test('changes no mapped person', () => {
    expect(answered(mirrored, lookUp('wanted'), found())).toEqual(mirrored);
    expect(answered(mirrored, lookUp('wanted'), found({ role: 'differs' }))).toEqual(mirrored);
  });

  test('that finds a user of another role or person keeps no attempt', () => {
    expect(answered(lost, lookUp('attempted'), found({ role: 'differs' }))).toMatchObject({
      ...{ attempt: null, review: 'role-mismatch' },
    });
    expect(answered(lost, lookUp('attempted'), found({ heldByAnother: true }))).toMatchObject({
      ...{ attempt: null, review: 'platform-user-taken' },
    });
  });

  test('of any email ends the backoff if it is answered, and lengthens it otherwise', () => {
    const any = lookUp('any');
    expect(answered({ ...client, ...failing }, any, { kind: 'forbidden' })).toEqual(client);
    expect(answered({ ...client, ...failing }, any, { kind: 'absent' })).toEqual(client);
    const rejected: Answer = { kind: 'rejected', isFinal: false };
    expect(answered({ ...client, ...failing }, any, rejected)).toMatchObject({ failures: 0, retryAt: null });
    expect(answered({ ...client, ...failing }, any, { kind: 'unreachable' })).toMatchObject({ failures: 4 });
    expect(answered({ ...client, ...failing }, any, { kind: 'rate-limited' })).toMatchObject(failing);
  });

  test('without an answer keeps an open attempt, and is repeated', () => {
    const after = answered(lost, lookUp('attempted'), { kind: 'unknown' });
    expect(after).toEqual({ ...lost, failures: 4, retryAt });
    expect(answered(client, lookUp('wanted'), { kind: 'unknown' })).toEqual({ ...client, failures: 1, retryAt });
  });
});

describe('a create', () => {
  const sent: Person = { ...client, attempt: attempt('createClient') };
  const made = (userId: string): Answer => ({ kind: 'created', userId, heldByAnother: false });

  test('of a provider maps its user, with an empty list', () => {
    const provider: Person = { ...newcomer('provider'), checkedAbsentAt: now, attempt: attempt('createProvider') };
    expect(answered(provider, step('createProvider'), made('u7'))).toEqual({
      ...{ ...provider, checkedAbsentAt: null, attempt: null },
      ...{ platformUserId: 'u7', origin: 'created', appliedProviders: [] },
    });
  });

  test('of the user that an event has linked is mapped as created', () => {
    const linked: Person = { ...sent, platformUserId: 'u7', origin: 'event' };
    expect(answered(linked, step('createClient'), made('u7'))).toMatchObject({ origin: 'created' });
    expect(answered(linked, step('createClient'), made('u8'))).toEqual({ ...linked, attempt: null });
  });

  test('without an answer is looked up, not repeated', () => {
    const later = new Date(lookUpAt.getTime() + 1);
    const after = answered({ ...sent, attempt: attempt('createClient', { lookUpAt: later }) }, step('createClient'), {
      kind: 'unknown',
    });
    expect(after).toEqual({ ...sent, failures: 1, attempt: attempt('createClient') });
  });

  test('that is forbidden is a fault, unless outdated', () => {
    expect(answered(sent, step('createClient'), { kind: 'forbidden' }).fault).toBe('forbidden');
    expect(answered(sent, step('createClient'), { kind: 'forbidden' }, true)).toEqual(client);
  });
});

describe('a delete', () => {
  const leaving: Person = {
    ...{ ...mirrored, wanted: false, checkedAbsentAt: now, review: 'platform-user-missing' },
    ...{ appliedProviders: null, attempt: attempt('deleteUser') },
  };

  test('forgets the user and everything about it', () => {
    expect(answered(leaving, step('deleteUser'), { kind: 'deleted' })).toEqual({
      ...{ ...leaving, platformUserId: null, origin: null, attempt: null, checkedAbsentAt: null },
      ...{ review: null, appliedProviders: [] },
    });
  });

  test('that had no effect leaves no attempt for a provider', () => {
    expect(answered({ ...leaving, kind: 'provider' }, step('deleteUser'), { kind: 'not-sent' }).attempt).toBeNull();
  });

  test('without an answer may take effect later', () => {
    const early = { ...leaving, attempt: attempt('deleteUser', { lookUpAt: now }) };
    const after = answered(early, step('deleteUser'), { kind: 'unknown' });
    expect(after).toMatchObject({ attempt: { lookUpAt }, failures: 1, retryAt });
  });

  test('whose 404 is doubtful is refused, and ends the backoff', () => {
    expect(answered({ ...leaving, ...failing }, step('deleteUser'), { kind: 'doubtful' })).toMatchObject({
      ...{ failures: 0, retryAt: null, refusal: refusal('deleteUser', 'doubtful') },
    });
  });
});

describe('a refusal', () => {
  const refused = (kind: Refusal['kind'], operation: Operation = 'createClient'): Person => ({
    ...client,
    refusal: refusal(operation, kind),
  });
  const create = step('createClient');

  test('is counted by operation', () => {
    const again = answered(refused('stopped'), create, { kind: 'stopped' });
    expect(again.refusal).toEqual({ ...refusal('createClient', 'stopped'), count: 2 });
    const other = answered(refused('stopped', 'deleteUser'), create, { kind: 'stopped' });
    expect(other.refusal).toEqual(refusal('createClient', 'stopped'));
  });

  test('that is a rejection outlives an answer that stops everyone', () => {
    expect(answered(refused('rejected'), create, { kind: 'stopped' }).refusal?.kind).toBe('rejected');
  });

  test.each(['rate-limited', 'not-sent', 'unreachable', 'unknown'] as const)('outlives %s', (kind) => {
    expect(answered(refused('rejected'), create, { kind }).refusal?.kind).toBe('rejected');
  });

  test('ends with any other answer of its operation', () => {
    expect(answered(refused('rejected'), create, { kind: 'forbidden' }).refusal).toBeNull();
    expect(answered(refused('rejected'), create, { kind: 'rejected', isFinal: true }).refusal).toBeNull();
    expect(answered(refused('rejected'), create, { kind: 'rejected', isFinal: false }, true).refusal).toBeNull();
    expect(answered(refused('rejected', 'deleteUser'), create, { kind: 'forbidden' }).refusal).not.toBeNull();
  });
});

test('a second user is one that a create or its lookup names, and that no one else has', () => {
  const made = { kind: 'created', userId: 'u7', heldByAnother: false } as const;
  const second = (call: CallStep, answer: Answer) => secondUserOf(mirrored, call, answer);
  expect(second(step('createClient'), made)).toBe('u7');
  expect(second(step('createClient'), { ...made, heldByAnother: true })).toBeUndefined();
  expect(second(lookUp('attempted'), found())).toBe('u7');
  expect(second(lookUp('attempted'), found({ userId: 'u9' }))).toBeUndefined();
  expect(second(lookUp('attempted'), found({ role: 'differs' }))).toBeUndefined();
  expect(second(lookUp('wanted'), found())).toBeUndefined();
  expect(second(step('deleteUser'), { kind: 'deleted' })).toBeUndefined();
});
