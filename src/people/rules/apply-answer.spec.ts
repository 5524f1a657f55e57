import type { Verdict } from '../../platform/pauses/pause-rule.js';
import type { SentCall } from './apply-call.js';
import {
  answered,
  at,
  check,
  create,
  created,
  failed,
  found,
  list,
  marked,
  mirrored,
  NOW,
  ok,
  remove,
  SETTLED,
  sent,
  unmapped,
} from './calls.spec-support.js';
import { newcomer } from './newcomer.spec-support.js';
import type { Person, Refusal } from './person.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const leaving: Person = { ...mirrored, wanted: false };
const wanted = check('wanted');

/** Each operation with a person that it is called for. */
const CALLS: [string, Person, SentCall][] = [
  ['a check', unmapped, wanted],
  ['a create', unmapped, create],
  ['a list', mirrored, list],
  ['a deletion', leaving, remove],
];
const OTHERS = CALLS.filter(([name]) => name !== 'a create');

describe('a success', () => {
  test('of a check that does not find the email allows a create', () => {
    const absent = answered(unmapped, wanted, ok({ kind: 'absent' }));
    expect(absent).toEqual({ ...unmapped, checkedAbsentAt: NOW });
  });

  test('of a check that finds a user links it, with an unknown list', () => {
    const user = { platformUserId: 'u7', origin: 'linked', appliedProviders: null, review: null };
    expect(answered(unmapped, wanted, found())).toMatchObject(user);
    expect(answered(unmapped, wanted, found({ role: 'fits' }))).toMatchObject(user);
  });

  test('of a create maps the user, whose list has only the primary', () => {
    const user = { platformUserId: 'u7', origin: 'created', appliedProviders: ['u1'], unsettled: null };
    expect(answered(unmapped, create, created())).toMatchObject(user);
    const provider: Person = { ...newcomer('provider'), email: 'a1' };
    expect(answered(provider, sent('createProvider'), created())).toMatchObject({ ...user, appliedProviders: [] });
  });

  test('of a create keeps the user that an event linked meanwhile', () => {
    const linked: Person = { ...unmapped, platformUserId: 'u1', origin: 'event' };
    expect(answered(linked, create, created('u1'))).toMatchObject({ platformUserId: 'u1', origin: 'created' });
    const both = { ...linked, others: [{ id: 'u2', origin: 'created', role: null }] };
    expect(answered(linked, create, created('u2'))).toEqual(both);
  });

  test('of a list applies it', () => {
    expect(answered(mirrored, list, ok({ kind: 'applied' }))).toEqual({ ...mirrored, appliedProviders: ['u1', 'u2'] });
  });

  test.each([ok({ kind: 'deleted' }), failed('gone', 404)])('of a deletion forgets the user: %j', (answer) => {
    const doubted: Person = { ...leaving, review: 'platform-user-missing', checkedAbsentAt: NOW, failures: 2 };
    expect(answered(doubted, remove, answer)).toMatchObject({
      ...{ platformUserId: null, origin: null, unsettled: null, appliedProviders: [], review: null },
      ...{ checkedAbsentAt: null, dueAt: null },
    });
  });

  test('ends the row of failures', () => {
    const failing: Person = { ...mirrored, failures: 3, dueAt: NOW };
    expect(answered(failing, list, ok({ kind: 'applied' }))).toMatchObject({ failures: 0, dueAt: null });
  });
});

describe('a user that is another person’s or of another role needs review', () => {
  test('after a check, a create and the lookup of one', () => {
    const lookup = check('attempted');
    const taken = { platformUserId: null, review: 'platform-user-taken', unsettled: null };
    expect(answered(unmapped, wanted, found({ heldByAnother: true }))).toMatchObject(taken);
    expect(answered(unmapped, create, created('u7', true))).toMatchObject(taken);
    const differs = { platformUserId: null, review: 'role-mismatch', unsettled: null };
    expect(answered(unmapped, wanted, found({ role: 'differs' }))).toMatchObject(differs);
    const lost = { ...marked(unmapped, create), call: null };
    expect(answered(lost, lookup, found({ heldByAnother: true }))).toMatchObject(taken);
    expect(answered(lost, lookup, found({ role: 'differs' }))).toMatchObject(differs);
  });
});

test.each(CALLS)('after a 429, %s is repeated when its pause ends, at most a second later', (_name, person, call) => {
  const limitedUntil = at(30_000);
  const after = answered(person, call, failed('limited', 429), { limitedUntil, fraction: 0.25 });
  expect(after).toMatchObject({ call: null, failures: 0, fault: null, dueAt: at(30_250) });
});

describe.each<[Verdict, number]>([
  ['unauthorized', 401],
  ['elsewhere', 403],
])('an answer that is about everyone (%s)', (verdict, code) => {
  test.each(CALLS)('delays %s and is remembered', (_name, person, call) => {
    const refused = { operation: call.operation, code, at: NOW };
    expect(answered({ ...person, failures: 1 }, call, failed(verdict, code))).toMatchObject({
      ...{ failures: 2, dueAt: at(60_000), fault: null, refused },
    });
  });
});

describe.each<[Verdict, number, string]>([
  ['personal', 401, 'forbidden'],
  ['personal', 403, 'forbidden'],
  ['personal', 405, 'rejected'],
  ['refused', 422, 'rejected'],
])('an answer that is about one person (%s %s)', (verdict, code, fault) => {
  test.each(CALLS)('fails %s, and it is tried once more after an hour', (_name, person, call) => {
    const once = answered(person, call, failed(verdict, code));
    const refused = { operation: call.operation, code, at: NOW };
    expect(once).toMatchObject({ fault, refused, dueAt: at(HOUR_MS), call: null });
    expect(answered(once, call, failed(verdict, code))).toMatchObject({ fault, refused, dueAt: null });
  });

  test.each(CALLS)('does not fail %s of a person that the EHR has changed since', (_name, person, call) => {
    const left = { ...marked(person, call), version: 2 };
    const after = answered(left, call, failed(verdict, code));
    expect(after).toMatchObject({ fault: null, refused: null, failures: 0, dueAt: null });
  });
});

test('a create that is refused because an event has named its user does not fail the person', () => {
  const linked: Person = { ...mirrored, origin: 'event' };
  expect(answered(linked, create, failed('refused', 409))).toMatchObject({ fault: null, refused: null, dueAt: null });
});

describe('a failed person that is tried once more', () => {
  const refused: Refusal = { operation: 'createClient', code: 422, at: NOW };
  const once: Person = { ...unmapped, fault: 'rejected', refused, dueAt: NOW };

  test('stays failed after the check before its create, which goes at once', () => {
    const checked = answered(once, wanted, ok({ kind: 'absent' }));
    expect(checked).toMatchObject({ fault: 'rejected', refused, dueAt: NOW, checkedAbsentAt: NOW });
    expect(answered(checked, create, failed('refused', 422))).toMatchObject({ fault: 'rejected', dueAt: null });
  });

  test('is mapped if a check finds its user, or if the create succeeds', () => {
    const mapped = { platformUserId: 'u7', fault: null, refused: null, dueAt: null };
    expect(answered(once, wanted, found())).toMatchObject(mapped);
    expect(answered(once, create, created())).toMatchObject(mapped);
  });

  test('is no longer failed once the list that failed succeeds, although a check for the API came before', () => {
    const listing: Person = {
      ...mirrored,
      fault: 'rejected',
      refused: { ...refused, operation: 'setClientProviders' },
    };
    const checked = answered({ ...listing, dueAt: NOW }, check('any'), ok({ kind: 'absent' }));
    expect(checked).toMatchObject({ fault: 'rejected', dueAt: NOW });
    const applied = answered(checked, list, ok({ kind: 'applied' }));
    expect(applied).toMatchObject({ fault: null, refused: null, dueAt: null });
  });

  test('is no longer failed once the check that failed succeeds', () => {
    const checking: Person = { ...once, refused: { ...refused, operation: 'checkUser' } };
    expect(answered(checking, wanted, ok({ kind: 'absent' }))).toMatchObject({ fault: null, dueAt: null });
  });

  test('is looked up if its create gets no answer', () => {
    const lost = answered(once, create, failed('lost'));
    expect(lost).toMatchObject({ fault: null, dueAt: null, unsettled: { operation: 'createClient' } });
  });

  test.each(['limited', 'unauthorized', 'unreachable', 'unsent'] as const)(
    'stays failed, and is tried again, if the answer is %s',
    (verdict) => {
      const after = answered(once, create, failed(verdict));
      expect(after.fault).toBe('rejected');
      expect(after.dueAt).not.toBeNull();
    },
  );
});

describe('a 404 of an address that names a user', () => {
  test('means that the user of a list is missing, if the address works', () => {
    const missing = answered(mirrored, list, failed('gone', 404));
    expect(missing).toMatchObject({ platformUserId: 'u9', review: 'platform-user-missing', unsettled: null });
  });

  test.each(['setClientProviders', 'deleteUser'] as const)('is remembered as doubtful for %s', (operation) => {
    const after = answered(operation === 'deleteUser' ? leaving : mirrored, sent(operation), failed('doubtful', 404));
    expect(after).toMatchObject({ refused: { operation, code: 404, at: NOW }, fault: null, review: null, dueAt: null });
  });

  test('is no longer doubtful once a check of any email succeeds, and needs review if that is refused', () => {
    const doubted: Person = { ...leaving, refused: { operation: 'deleteUser', code: 404, at: NOW } };
    for (const answer of [ok({ kind: 'absent' }), found()])
      expect(answered(doubted, check('any'), answer)).toMatchObject({ refused: null, fault: null, review: null });
    const refused = answered(doubted, check('any'), failed('refused', 422));
    expect(refused).toMatchObject({ refused: null, fault: null, review: 'delete-unconfirmed' });
    const lost = answered(doubted, check('any'), failed('lost'));
    expect(lost).toMatchObject({ refused: doubted.refused, failures: 1, dueAt: at(15_000) });
  });

  test('needs review at a path of the contract that never worked', () => {
    const review = (person: Person, call: SentCall) => answered(person, call, failed('unconfirmed', 404)).review;
    expect(review(mirrored, list)).toBe('platform-user-missing');
    expect(review(leaving, remove)).toBe('delete-unconfirmed');
  });
});

describe.each(['lost', 'unreachable', 'unreadable'] as const)('a call that is %s', (verdict) => {
  test.each(verdict === 'lost' ? OTHERS : CALLS)('delays %s, each time longer', (_name, person, call) => {
    const waits = [0, 1, 2, 3, 4, 9].map((failures) => {
      const after = answered({ ...person, failures }, call, failed(verdict));
      expect(after).toMatchObject({ failures: failures + 1, fault: null, call: null });
      return ((after.dueAt?.getTime() ?? 0) - NOW.getTime()) / 1_000;
    });
    expect(waits).toEqual([15, 60, 300, 1_800, 3_600, 3_600]);
  });
});

test.each(CALLS)(
  'a call that this process did not send is no failure: %s is due again after 5 s',
  (_name, person, call) => {
    const after = answered({ ...person, failures: 2 }, call, failed('unsent'));
    expect(after).toMatchObject({ failures: 2, fault: null, call: null, dueAt: at(5_000) });
  },
);

describe('28 failures in a row', () => {
  const faultAfter = (verdict: Verdict, failures: number, succeededAt: Date | null, person: Person, call: SentCall) =>
    answered({ ...person, failures }, call, failed(verdict), { succeededAt }).fault;

  test.each(OTHERS)('without an answer fail %s, if the operation succeeds for others', (_name, person, call) => {
    const lost = (failures: number, succeededAt: Date | null) =>
      faultAfter('lost', failures, succeededAt, person, call);
    expect(lost(26, NOW)).toBeNull();
    expect(lost(27, NOW)).toBe('unanswered');
    expect(lost(27, at(1 - DAY_MS))).toBe('unanswered');
    expect(lost(27, at(-DAY_MS))).toBeNull();
    expect(lost(27, null)).toBeNull();
  });

  test.each(CALLS)('of a connection or of this process do not fail %s', (_name, person, call) => {
    for (const verdict of ['unreachable', 'unsent'] as const)
      expect(faultAfter(verdict, 27, NOW, person, call)).toBeNull();
  });
});

test.each(['limited', 'unauthorized', 'refused', 'unreachable', 'unsent'] as const)(
  'a create that is %s had no effect; a list or deletion leaves the list to be sent again',
  (verdict) => {
    expect(answered(unmapped, create, failed(verdict)).unsettled).toBeNull();
    expect(answered(mirrored, list, failed(verdict))).toMatchObject({ unsettled: null, appliedProviders: null });
    const stays = answered(leaving, remove, failed(verdict));
    expect(stays).toMatchObject({ platformUserId: 'u9', appliedProviders: null });
    expect(stays.unsettled).toMatchObject({ operation: 'setClientProviders', lookUpAt: SETTLED });
    expect(answered({ ...leaving, kind: 'provider' }, remove, failed(verdict)).unsettled).toBeNull();
  },
);

test('a check of any email changes nothing else about the person', () => {
  for (const answer of [found({ heldByAnother: true }), ok({ kind: 'absent' }), failed('personal', 403)])
    expect(answered(leaving, check('any'), answer)).toEqual(leaving);
  expect(answered(leaving, check('any'), failed('elsewhere', 403))).toEqual({
    ...{ ...leaving, failures: 1, dueAt: at(15_000) },
  });
});
