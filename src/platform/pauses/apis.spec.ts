import { USER_OPERATIONS } from '../contract/capabilities.js';
import { apiOf, isApi, KEYS, SESSIONS, USER_MANAGEMENT } from './apis.js';

test.each(USER_OPERATIONS)('%s belongs to user management', (operation) => {
  expect(apiOf(operation)).toBe(USER_MANAGEMENT);
});

const SESSION_OPERATIONS = ['createSession', 'getSession', 'getProcessingSession'] as const;

test.each(SESSION_OPERATIONS)('%s belongs to sessions', (operation) => {
  expect(apiOf(operation)).toBe(SESSIONS);
});

test('both APIs and each of their operations have one pause', () => {
  expect([...KEYS].sort()).toEqual([USER_MANAGEMENT, SESSIONS, ...USER_OPERATIONS, ...SESSION_OPERATIONS].sort());
  expect(KEYS.filter(isApi)).toEqual([USER_MANAGEMENT, SESSIONS]);
});
