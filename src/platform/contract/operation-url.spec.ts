import { operationUrl } from './addresses.js';
import { Contract } from './contract.js';
import type { OperationName } from './operations.js';

const builtIn = Contract.of({});
const base = 'https://platform.example';
const changed = (operation: OperationName, more: object) => Contract.of({ operations: { [operation]: more } });

test.each([
  ['base', builtIn, 'https://platform.example/v1'],
  ['path', changed('deleteUser', { path: '/v1/users/{userId}' }), base],
  ['method', changed('deleteUser', { method: 'POST' }), base],
  ['header', changed('deleteUser', { headers: { 'x-version': '1' } }), base],
  ['query', changed('deleteUser', { query: { version: '1' } }), base],
])('another %s is another URL of an operation', (_what, contract, at) => {
  expect(operationUrl(contract, at, 'deleteUser')).not.toBe(operationUrl(builtIn, base, 'deleteUser'));
  expect(operationUrl(contract, at, 'deleteUser')).toBe(operationUrl(contract, at, 'deleteUser'));
});
