import { NOW } from './calls.spec-support.js';
import { newcomer } from './newcomer.spec-support.js';
import type { CallStep, RestStep } from './next-step.js';
import type { Person, PersonState } from './person.js';
import { eventOf } from './person-event.js';

const client = newcomer('client');
const rest = (state: PersonState, code: string | null = null): RestStep => ({ do: 'rest', state, code });
const create: CallStep = { do: 'call', operation: 'createClient', state: 'failed', dueAt: NOW };
const event = (state: PersonState, step: CallStep | RestStep, fault: Person['fault'] = null, before = fault) =>
  eventOf({ state, fault: before }, { ...client, fault }, step);

test('a person that gets synced, deleted or in need of a review is announced, with the code of its rest', () => {
  expect(event('pending', rest('synced'))).toEqual({ type: 'person.synced', code: null });
  expect(event('deleting', rest('deleted'))).toEqual({ type: 'person.deleted', code: null });
  const review = rest('needs-review', 'email-taken');
  expect(event('pending', review)).toEqual({ type: 'person.needs-review', code: 'email-taken' });
});

test('a state that lasts, or in which work goes on, is not announced', () => {
  expect(event('synced', rest('synced'))).toBeUndefined();
  expect(event('synced', { ...create, state: 'pending' })).toBeUndefined();
  expect(event('pending', rest('waiting', 'provider-not-mirrored'))).toBeUndefined();
});

test('each new fault is announced once, also while the call is tried once more', () => {
  const rejected = { type: 'person.failed', code: 'rejected' };
  expect(event('pending', create, 'rejected', null)).toEqual(rejected);
  expect(event('failed', rest('failed', 'rejected'), 'rejected')).toBeUndefined();
  expect(event('failed', rest('failed', 'rejected'), 'rejected', 'forbidden')).toEqual(rejected);
});

test('a person that an operator ignores is not announced', () => {
  expect(event('failed', rest('failed', 'ignored'), 'ignored', 'rejected')).toBeUndefined();
});
