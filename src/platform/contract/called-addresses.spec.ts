import { contractOf, FULL_CONTRACT } from '../clients/loopback-platform.spec-support.js';
import { calledAddresses } from './addresses.js';

const contract = contractOf(FULL_CONTRACT);
const warnings = (base: string) => calledAddresses(contract, base).warnings;

test('lists the URL of every configured operation', () => {
  const { addresses } = calledAddresses(contract, 'https://platform.example/tenant');
  expect(addresses.map(({ operation }) => operation)).toEqual(Object.keys(contract.operations));
  expect(addresses.map(({ method, url }) => `${method} ${url}`)).toContain(
    'DELETE https://platform.example/tenant/users/{userId}',
  );
  expect(
    calledAddresses(contractOf({}), 'https://platform.example').addresses.map(({ operation }) => operation),
  ).toEqual(['initiateAuth']);
});

test.each(['https://platform.example/api/v2', 'https://platform.example/x/api/v1', 'https://platform.example/api'])(
  'warns about a base URL that contains the start of a path (%s)',
  (base) => {
    expect(warnings(base)).toEqual([
      `updateSession is called at PATCH ${base}/api/v2/therapy-session/{sessionId}, which contains /api twice. Remove it from PLATFORM_BASE_URL, or set operations.updateSession.path in the contract file.`,
    ]);
  },
);

test.each(['https://platform.example', 'https://platform.example/v2'])(
  'does not warn about a base URL without such a part (%s)',
  (base) => expect(warnings(base)).toEqual([]),
);
