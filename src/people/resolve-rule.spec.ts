import { newcomer } from './newcomer.spec-support.js';
import type { PersonState } from './person.js';
import { type ResolveAction, resolveRefusal } from './resolve-rule.js';

const somebody = newcomer('client');
const mapped = { ...somebody, platformUserId: 'u-1' };
const ACTIONS: ResolveAction[] = ['link', 'create', 'retry', 'ignore'];

test.each<PersonState>(['needs-review', 'failed'])('a person that is %s may be resolved in every way', (state) => {
  expect(ACTIONS.map((action) => resolveRefusal(action, state, mapped))).toEqual([null, null, null, null]);
});

test('a synced person is never made again, linked elsewhere or left out', () => {
  for (const action of ['link', 'create', 'ignore'] as const) {
    expect(resolveRefusal(action, 'synced', mapped)).toBe('nothing-to-resolve');
  }
});

test('a retry harms nobody', () => {
  expect(resolveRefusal('retry', 'synced', mapped)).toBeNull();
});

test('somebody with whom the service has not begun may be linked beforehand', () => {
  expect(resolveRefusal('link', 'waiting', somebody)).toBeNull();
  expect(resolveRefusal('create', 'waiting', somebody)).toBe('nothing-to-resolve');
});

test('while a call is not settled the service may still find out itself', () => {
  const lookUpAt = new Date(0);
  const attempt = { callId: '1', operation: 'createClient' as const, email: null, lookUpAt };
  expect(resolveRefusal('link', 'pending', { ...somebody, attempt })).toBe('call-under-way');
});
