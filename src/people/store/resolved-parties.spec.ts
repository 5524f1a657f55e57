import { type NamedPerson, parties } from './resolved-parties.js';

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
};
const client: NamedPerson = {
  ...provider,
  id: 'b',
  kind: 'client',
  externalId: 'c-1',
  platformUserId: 'C1',
  appliedProviders: ['P1'],
};
type Change = { provider?: NamedPerson | null; client?: NamedPerson | null; treats?: boolean };
const problem = (change: Change) => {
  const named = { provider, client, treats: true, ...change };
  try {
    parties(named.provider, named.client, named.treats);
  } catch (refusal) {
    return refusal;
  }
  return undefined;
};

it('a mirrored provider and the client that it treats are given with their ids on the platform', () => {
  expect(parties(provider, client, true)).toEqual({
    provider: { id: 'a', externalId: 'p-1', platformUserId: 'P1' },
    client: { id: 'b', externalId: 'c-1', platformUserId: 'C1' },
  });
});

it('no client may be named', () => {
  expect(parties(provider, undefined, false).client).toBeNull();
});

it.each([
  ['unknown-provider', { provider: null }, '/provider'],
  ['unknown-provider', { provider: { ...provider, state: 'deleted' as const } }, '/provider'],
  ['unknown-client', { client: null }, '/client'],
  ['not-treated', { treats: false }, '/client'],
])('422 %s', (type, change, pointer) => {
  expect(problem(change)).toMatchObject({ status: 422, type, more: { pointer } });
});

it.each([
  ['provider', { provider: { ...provider, platformUserId: null, state: 'pending' as const } }, 'pending'],
  ['provider', { provider: { ...provider, wanted: false, state: 'deleting' as const } }, 'deleting'],
  ['client', { client: { ...client, platformUserId: null, state: 'waiting' as const } }, 'waiting'],
  ['client', { client: { ...client, state: 'pending' as const, appliedProviders: ['P2'] } }, 'pending'],
  ['client', { client: { ...client, state: 'needs_review' as const, providersKnown: false } }, 'needs-review'],
])('409: a %s that is not mirrored, with its sync state', (kind, change, state) => {
  expect(problem(change)).toMatchObject({
    status: 409,
    type: `${kind}-not-mirrored`,
    more: { extensions: { sync: { state } } },
  });
});

it('a client whose list is about to change may be used by a provider that the platform lists already', () => {
  expect(problem({ client: { ...client, state: 'pending' } })).toBeUndefined();
});
