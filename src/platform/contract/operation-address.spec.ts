import { operationAddress } from './addresses.js';
import { Contract } from './contract.js';
import type { OperationName } from './operations.js';

const USERS = ['checkUser', 'createProvider', 'createClient', 'setClientProviders', 'deleteUser'] as const;
const builtIn = Contract.of({});
const base = 'https://platform.example';
const changed = (operation: OperationName, more: object) => Contract.of({ operations: { [operation]: more } });

test('as the spec shows it, user management lives at one address', () => {
  expect(new Set(USERS.map((operation) => operationAddress(builtIn, base, operation))).size).toBe(1);
});

test.each([
  ['base', builtIn, 'https://platform.example/v1'],
  ['path', changed('deleteUser', { path: '/v1/users/{userId}' }), base],
  ['path after the user', changed('deleteUser', { path: '/users/{userId}/account' }), base],
  ['header', changed('deleteUser', { headers: { 'x-version': '1' } }), base],
  ['query', changed('deleteUser', { query: { version: '1' } }), base],
])('another %s is another address', (_what, contract, at) => {
  expect(operationAddress(contract, at, 'deleteUser')).not.toBe(operationAddress(builtIn, base, 'checkUser'));
});

test('a prefix that all paths have in common is one address, whatever follows as the spec shows it', () => {
  const both = Contract.of({
    operations: { deleteUser: { path: '/v2/users/{userId}' }, checkUser: { path: '/v2/users/check' } },
  });
  expect(operationAddress(both, base, 'deleteUser')).toBe(operationAddress(both, base, 'checkUser'));
});
