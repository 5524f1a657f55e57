import { applyAnswer } from './apply-answer.js';
import { type SentCall } from './apply-call.js';
import {
  answered,
  at,
  check,
  create,
  created,
  FACTS,
  failed,
  found,
  marked,
  mirrored,
  NOW,
  ok,
  SETTLED,
  sent,
  unmapped,
} from './calls.spec-support.js';
import type { Person } from './person.js';

const lookup = check('attempted', { id: '2' });
const lost = answered(unmapped, create, failed('lost'));

describe('a create without an answer', () => {
  test('stays unsettled with the email that was sent, and sets no other time', () => {
    const open = { call: '1', operation: 'createClient', email: 'a1', lookUpAt: SETTLED };
    expect(lost).toEqual({ ...unmapped, failures: 1, unsettled: open });
    expect(answered({ ...unmapped, email: 'b2' }, create, failed('lost')).unsettled).toEqual(open);
  });

  test('is mapped as created if its lookup finds the user, even after the email has changed', () => {
    const mapped = { platformUserId: 'u7', origin: 'created', appliedProviders: null, unsettled: null, failures: 0 };
    expect(answered(lost, lookup, found())).toMatchObject(mapped);
    expect(answered({ ...lost, email: 'b2', version: 2 }, lookup, found())).toMatchObject(mapped);
    expect(answered({ ...lost, email: null, wanted: false }, lookup, found())).toMatchObject(mapped);
  });

  test('is repeated if its lookup does not find the user, but not at once', () => {
    const absent = answered(lost, lookup, ok({ kind: 'absent' }));
    expect(absent).toEqual({ ...unmapped, checkedAbsentAt: NOW, failures: 1, dueAt: at(15_000) });
  });

  test('does not delay the check of another email, or a deletion', () => {
    const changed = answered({ ...lost, email: 'b2' }, lookup, ok({ kind: 'absent' }));
    expect(changed).toMatchObject({ checkedAbsentAt: null, unsettled: null });
    const deleted = answered({ ...lost, wanted: false }, lookup, ok({ kind: 'absent' }));
    expect(deleted).toMatchObject({ dueAt: null, unsettled: null });
    const restated = answered({ ...lost, failures: 0 }, lookup, ok({ kind: 'absent' }));
    expect(restated).toMatchObject({ dueAt: null, checkedAbsentAt: NOW });
  });

  test('stays unsettled while its lookup gets no answer', () => {
    expect(answered(lost, lookup, failed('lost'))).toEqual({ ...lost, failures: 2, dueAt: at(60_000) });
  });

  test('is repeated ever later, and fails after a day, although its checks are answered', () => {
    const facts = { ...FACTS, succeededAt: NOW };
    let person = unmapped;
    const waits: number[] = [];
    const call = (sentCall: SentCall, answer: Parameters<typeof applyAnswer>[2]) => {
      person = applyAnswer(marked(person, sentCall), sentCall, answer, facts);
    };
    while (person.fault === null && waits.length < 100) {
      call(create, failed('lost'));
      call(lookup, ok({ kind: 'absent' }));
      waits.push(((person.dueAt?.getTime() ?? 0) - NOW.getTime()) / 1_000);
      // The first check is too old after the longer waits.
      if (person.fault === null) call(check('wanted'), ok({ kind: 'absent' }));
    }
    expect(waits.slice(0, 6)).toEqual([15, 60, 300, 1_800, 3_600, 3_600]);
    expect(waits).toHaveLength(28);
    expect(person).toMatchObject({ fault: 'unanswered', dueAt: null });
  });

  test('ends the row of failures once it succeeds', () => {
    expect(answered({ ...unmapped, failures: 3 }, create, created()).failures).toBe(0);
  });
});

describe('after the EHR changed the email during a check', () => {
  test('a user found by the old email is not linked, nor its absence believed', () => {
    const changed = { ...unmapped, email: 'b2', version: 2 };
    expect(answered(changed, check('wanted'), found())).toMatchObject({ platformUserId: null, review: null });
    expect(answered(changed, check('wanted'), found({ role: 'differs' }))).toMatchObject({ review: null });
    expect(answered(changed, check('wanted'), ok({ kind: 'absent' }))).toMatchObject({ checkedAbsentAt: null });
  });
});

test('a successful create is kept although the EHR deleted the person, because the user now exists', () => {
  const gone = { ...marked(unmapped, create), wanted: false, email: null, version: 2 };
  const after = applyAnswer(gone, create, created(), FACTS);
  expect(after).toMatchObject({ wanted: false, platformUserId: 'u7' });
});

test('no check or lookup changes the user that an event linked during the call', () => {
  const linked: Person = { ...unmapped, platformUserId: 'u1', origin: 'event' };
  for (const more of [{}, { heldByAnother: true }, { role: 'differs' as const }, { userId: 'u1' }]) {
    expect({ ...answered(linked, lookup, found(more)), others: [] }).toEqual(linked);
    expect(answered(linked, check('wanted'), found(more))).toEqual(linked);
  }
});

describe('a list or a deletion without an answer', () => {
  test('leaves the list unknown and unsettled, and repeats it', () => {
    const call = sent('setClientProviders', { providerUserIds: ['u2'] });
    const after = answered(mirrored, call, failed('lost'));
    expect(after).toMatchObject({ appliedProviders: null, dueAt: at(15_000), unsettled: { lookUpAt: SETTLED } });
  });

  test('is not settled by the answer to a later list', () => {
    const first = answered(mirrored, sent('setClientProviders'), failed('lost'));
    const second = sent('setClientProviders', { id: '2', providerUserIds: ['u2'] });
    const after = answered(first, second, ok({ kind: 'applied' }));
    expect(after).toMatchObject({ appliedProviders: ['u2'], unsettled: { call: '1' } });
  });

  test('stays open until a deletion is answered, even if a later one was not sent', () => {
    const leaving = { ...mirrored, wanted: false };
    const first = answered(leaving, sent('deleteUser'), failed('lost'));
    const second = sent('deleteUser', { id: '2' });
    const open = { platformUserId: 'u9', unsettled: { operation: 'deleteUser', call: '1' } };
    expect(answered(first, second, failed('limited', 429))).toMatchObject(open);
    expect(answered(first, second, failed('gone', 404))).toMatchObject({ platformUserId: null, unsettled: null });
  });
});
