import { operationAddress } from './addresses.js';
import { Contract } from './contract.js';
import type { OperationName } from './operations.js';

const USERS = ['checkUser', 'createProvider', 'createClient', 'setClientProviders', 'deleteUser'] as const;
const builtIn = Contract.of({});
const base = 'https://platform.example';
const changed = (operation: OperationName, more: object) => Contract.of({ operations: { [operation]: more } });

test('user management has one address in the spec', () => {
  expect(new Set(USERS.map((operation) => operationAddress(builtIn, base, operation))).size).toBe(1);
});

test.each([
  ['base', builtIn, 'https://platform.example/v1'],
  ['path', changed('deleteUser', { path: '/v1/users/{userId}' }), base],
  ['path after the user', changed('deleteUser', { path: '/users/{userId}/account' }), base],
  ['header', changed('deleteUser', { headers: { 'x-version': '1' } }), base],
  ['query', changed('deleteUser', { query: { version: '1' } }), base],
])('a different %s is a different address', (_what, contract, at) => {
  expect(operationAddress(contract, at, 'deleteUser')).not.toBe(operationAddress(builtIn, base, 'checkUser'));
});

test('operations whose paths share a prefix have one address', () => {
  const both = Contract.of({
    operations: { deleteUser: { path: '/v2/users/{userId}' }, checkUser: { path: '/v2/users/check' } },
  });
  expect(operationAddress(both, base, 'deleteUser')).toBe(operationAddress(both, base, 'checkUser'));
});
