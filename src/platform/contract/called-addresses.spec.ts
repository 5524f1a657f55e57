import { contractOf, FULL_CONTRACT } from '../clients/loopback-platform.spec-support.js';
import { calledAddresses } from './addresses.js';

const contract = contractOf(FULL_CONTRACT);
const warnings = (base: string) => calledAddresses(contract, base).warnings;

test('lists the URL of every configured operation', () => {
  const { addresses } = calledAddresses(contract, 'https://platform.example/tenant');
  expect(addresses.map(({ operation }) => operation)).toEqual(Object.keys(contract.operations));
  expect(addresses).toContainEqual({
    operation: 'deleteUser',
    method: 'DELETE',
    url: 'https://platform.example/tenant/users/{userId}',
  });
  expect(
    calledAddresses(contractOf({}), 'https://platform.example').addresses.map(({ operation }) => operation),
  ).toEqual(['initiateAuth']);
});

test.each([
  ['https://platform.example/api/v2', '/api/v2 twice'],
  ['https://platform.example/x/api/v2', '/api/v2 twice'],
  ['https://platform.example/api/v1', 'both /api/v1 and /api/v2'],
  ['https://platform.example/api', '/api twice'],
])('warns about a base URL that ends with the start of a path (%s)', (base, prefix) => {
  expect(warnings(base)).toEqual([
    `updateSession is called at PATCH ${base}/api/v2/therapy-session/{sessionId}, which contains ${prefix}. Remove it from PLATFORM_BASE_URL, or set operations.updateSession.path in the contract file.`,
  ]);
});

test.each(['https://platform.example', 'https://platform.example/v2', 'https://platform.example/api/v2/tenant'])(
  'does not warn about a base URL without a doubled prefix (%s)',
  (base) => expect(warnings(base)).toEqual([]),
);

test('two different versions are not a doubled prefix', () => {
  const operations = { updateSession: { path: '/v9/therapy-session/{sessionId}' } };
  const versioned = contractOf({ ...FULL_CONTRACT, operations: { ...FULL_CONTRACT.operations, ...operations } });
  const warnings = (base: string) => calledAddresses(versioned, base).warnings;
  expect(warnings('https://platform.example/v1')).toEqual([]);
  expect(warnings('https://platform.example/v9')).toEqual([expect.stringContaining('contains /v9 twice')]);
});
