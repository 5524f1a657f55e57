import { type Answer, applyLate } from './apply-answer.js';
import { abandon, type SentCall } from './apply-call.js';
import {
  answered,
  at,
  check,
  create,
  created,
  ENDED,
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
import { assignableUser, type Operation, type Person } from './person.js';

describe('before a call is sent', () => {
  test('it is recorded with its time', () => {
    const call = { id: '1', operation: 'checkUser', version: 1, lookUpAt: ENDED };
    expect(marked(unmapped, check('wanted'))).toEqual({ ...unmapped, call });
  });

  test.each(['createProvider', 'createClient'] as const)(
    'a %s is unsettled with its email, and ends the check',
    (operation) => {
      const left = marked({ ...unmapped, email: 'b2', checkedAbsentAt: NOW }, sent(operation));
      expect(left.unsettled).toEqual({ call: '1', operation, email: 'a1', lookUpAt: SETTLED });
      expect(left.checkedAbsentAt).toBeNull();
    },
  );

  test('the list that it replaces is forgotten; a provider being deleted is no longer assignable', () => {
    expect(marked(mirrored, list)).toMatchObject({ appliedProviders: null, unsettled: { call: '1' } });
    const provider: Person = { ...mirrored, kind: 'provider' };
    expect(assignableUser(provider)).toBe('u9');
    expect(assignableUser(marked(provider, remove))).toBeNull();
  });

  test('a list keeps an earlier one unsettled only while that may take effect', () => {
    const earlier = (lookUpAt: Date): Person => ({
      ...mirrored,
      unsettled: { call: '0', operation: 'setClientProviders', email: null, lookUpAt },
    });
    expect(marked(earlier(at(1)), list).unsettled).toMatchObject({ call: '0', lookUpAt: SETTLED });
    expect(marked(earlier(NOW), list).unsettled).toMatchObject({ call: '1', lookUpAt: SETTLED });
  });

  test('a deletion replaces an unsettled list, not an earlier deletion', () => {
    const left = (operation: Operation) =>
      marked({ ...mirrored, unsettled: { call: '0', operation, email: null, lookUpAt: NOW } }, remove).unsettled;
    expect(left('setClientProviders')).toMatchObject({ call: '1', operation: 'deleteUser' });
    expect(left('deleteUser')).toMatchObject({ call: '0', lookUpAt: NOW });
  });

  test('a deletion stays unsettled at least as long as the list that it replaces, which returns if it is refused', () => {
    const lookUpAt = at(200_000);
    const listing: Person = {
      ...{ ...mirrored, unsettled: { call: '0', operation: 'setClientProviders', email: null, lookUpAt } },
    };
    const after = answered(listing, remove, failed('refused', 422));
    expect(after.unsettled).toEqual({ call: '1', operation: 'setClientProviders', email: null, lookUpAt });
  });
});

describe('a call whose process died', () => {
  test('is closed; what it may have done stays unsettled, and the next call waits', () => {
    const left = marked(unmapped, create);
    expect(abandon(left, NOW)).toEqual({ ...left, call: null, failures: 1, dueAt: at(15_000) });
  });

  test('ends the old refusal of a repeated create, whose user is then looked up', () => {
    const refused: Person = { ...unmapped, fault: 'rejected', dueAt: NOW };
    expect(abandon(marked(refused, create), NOW).fault).toBeNull();
    expect(abandon(marked(refused, check('wanted')), NOW)).toMatchObject({ fault: 'rejected', dueAt: at(15_000) });
  });
});

describe('a late answer', () => {
  const abandoned = abandon(marked(unmapped, create), NOW);
  const lookup = check('attempted');

  test('to a create maps the user, also of a person that was deleted since', () => {
    const user = { platformUserId: 'u7', origin: 'created', appliedProviders: ['u1'], unsettled: null, dueAt: null };
    expect(applyLate(abandoned, create, created())).toMatchObject(user);
    expect(applyLate({ ...abandoned, wanted: false, email: null }, create, created())).toMatchObject(user);
  });

  test('maps the user while another call is in flight, which keeps its time', () => {
    const busy = { ...marked(abandoned, check('attempted', { id: '2' })), dueAt: ENDED };
    const late = applyLate(busy, create, created());
    expect(late).toMatchObject({ platformUserId: 'u7', call: { id: '2' }, dueAt: ENDED });
  });

  test('to a create leaves a later create unsettled, because that may make a second user', () => {
    const again = marked({ ...newcomer('provider'), email: 'a1' }, sent('createProvider', { id: '2' }));
    const late = applyLate(again, sent('createProvider'), created());
    expect(late).toMatchObject({ platformUserId: 'u7', unsettled: { call: '2' } });
  });

  test('with the user of another person needs review', () => {
    const late = applyLate(abandoned, create, created('u7', true));
    expect(late).toMatchObject({ platformUserId: null, review: 'platform-user-taken', unsettled: null });
  });

  test('to the lookup of a create maps the user, whose list is not known', () => {
    const late = applyLate(abandoned, lookup, found());
    expect(late).toMatchObject({ platformUserId: 'u7', origin: 'created', appliedProviders: null, unsettled: null });
    expect(applyLate(abandoned, lookup, found({ role: 'differs' }))).toBe(abandoned);
  });

  test.each<[string, Answer]>([
    ['checkUser', found()],
    ['checkUser', ok({ kind: 'absent' })],
    ['createClient', failed('refused', 422)],
    ['createClient', failed('lost')],
    ['setClientProviders', ok({ kind: 'applied' })],
    ['deleteUser', ok({ kind: 'deleted' })],
  ])('to %s that names no user that a create made changes nothing', (operation, answer) => {
    const call = operation === 'checkUser' ? check('wanted') : sent(operation as Operation);
    expect(applyLate(abandoned, call, answer)).toBe(abandoned);
    expect(applyLate(mirrored, call, answer)).toBe(mirrored);
  });

  test('never replaces the user that an event linked, but settles the create', () => {
    const linked: Person = { ...abandoned, platformUserId: 'u1', origin: 'event' };
    expect(applyLate(linked, create, created())).toMatchObject({ platformUserId: 'u1', unsettled: null });
  });
});

describe('a second user', () => {
  const linked: Person = { ...unmapped, platformUserId: 'u1', origin: 'event' };
  const others = (person: Person, call: SentCall, answer: Answer) => applyLate(person, call, answer).others;

  test('is the one that a create made, or that its lookup found, if the person has another one', () => {
    const second = [{ id: 'u2', origin: 'created', role: null }];
    expect(others(linked, create, created('u2'))).toEqual(second);
    expect(others(linked, check('attempted'), found({ userId: 'u2' }))).toEqual(second);
    expect(others(applyLate(linked, create, created('u2')), create, created('u2'))).toEqual(second);
  });

  test('is not the person’s own, another person’s, one of another role, or one that only has the email', () => {
    expect(others(linked, create, created('u1'))).toEqual([]);
    expect(others(unmapped, create, created('u2'))).toEqual([]);
    expect(others(linked, create, created('u2', true))).toEqual([]);
    expect(others(linked, check('attempted'), found({ userId: 'u2', role: 'differs' }))).toEqual([]);
    expect(others(linked, check('wanted'), found({ userId: 'u2' }))).toEqual([]);
    expect(others(linked, create, failed('lost'))).toEqual([]);
  });
});
