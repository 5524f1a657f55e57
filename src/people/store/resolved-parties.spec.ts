import { checkParties, type NamedPerson } from './resolved-parties.js';

const provider: NamedPerson = {
  id: 'a',
  kind: 'provider',
  externalId: 'p-1',
  state: 'synced',
  errorCode: null,
  wanted: true,
  platformUserId: 'P1',
  providersKnown: true,
  appliedProviders: [],
  providers: [],
};
const client: NamedPerson = {
  ...provider,
  id: 'b',
  kind: 'client',
  externalId: 'c-1',
  platformUserId: 'C1',
  appliedProviders: ['P1'],
  providers: ['p-1'],
};
type Change = { provider?: NamedPerson | undefined; client?: NamedPerson | null };
const problem = (change: Change) => {
  const named = { provider, client, ...change };
  try {
    checkParties(named.provider, named.client);
  } catch (refusal) {
    return refusal;
  }
  return undefined;
};

it('returns a mirrored provider and its client with their platform ids', () => {
  expect(checkParties(provider, client)).toEqual({
    provider: { id: 'a', externalId: 'p-1', platformUserId: 'P1' },
    client: { id: 'b', externalId: 'c-1', platformUserId: 'C1' },
  });
});

it('accepts a request without a client', () => {
  expect(checkParties(provider).client).toBeNull();
});

it.each([
  ['unknown-provider', { provider: undefined }, '/provider'],
  ['unknown-provider', { provider: { ...provider, state: 'deleted' as const } }, '/provider'],
  ['unknown-client', { client: null }, '/client'],
  ['not-treated', { client: { ...client, providers: ['p-2'] } }, '/client'],
])('rejects with 422 %s', (type, change, pointer) => {
  expect(problem(change)).toMatchObject({ status: 422, type, more: { pointer } });
});

it.each([
  ['provider', { provider: { ...provider, platformUserId: null, state: 'pending' as const } }, 'pending'],
  ['provider', { provider: { ...provider, wanted: false, state: 'deleting' as const } }, 'deleting'],
  ['client', { client: { ...client, platformUserId: null, state: 'waiting' as const } }, 'waiting'],
  ['client', { client: { ...client, state: 'pending' as const, appliedProviders: ['P2'] } }, 'pending'],
  ['client', { client: { ...client, state: 'needs-review' as const, providersKnown: false } }, 'needs-review'],
])('rejects a %s that is not mirrored with 409 and its sync state', (kind, change, state) => {
  expect(problem(change)).toMatchObject({
    status: 409,
    type: `${kind}-not-mirrored`,
    more: { extensions: { sync: { state } } },
  });
});

it('accepts a client with a pending list if the platform already lists the provider', () => {
  expect(problem({ client: { ...client, state: 'pending' } })).toBeUndefined();
});
