import { OPERATION_NAMES } from '../contract/operations.js';
import { apiOf, isApi, KEYS, keysOf } from './apis.js';

test('each operation has a pause, and belongs to one API', () => {
  expect([...KEYS].sort()).toEqual([...OPERATION_NAMES, 'user-management', 'sessions', 'compliance'].sort());
  expect(KEYS.filter(isApi)).toEqual(['user-management', 'sessions', 'compliance']);
  for (const operation of OPERATION_NAMES) expect(keysOf(apiOf(operation))).toContain(operation);
});
