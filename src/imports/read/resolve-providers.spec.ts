import fc from 'fast-check';
import type { AliasFact, LinkFact, ReferenceFact } from './import-row.js';
import { resolveProviders } from './resolve-providers.js';

const SEED = Number(process.env.SEED);

const provider = (externalId: string, key = externalId): AliasFact => ({
  type: 'alias',
  kind: 'provider',
  key,
  externalId,
});
const client: AliasFact = { type: 'alias', kind: 'client', key: 'client', externalId: 'c-1' };
const link = (providerKey: string, rank: 1 | 2 | 3, year?: number, position = 0): LinkFact => ({
  type: 'link',
  clientKey: 'client',
  providerKey,
  form: 'identifier',
  rank,
  position,
  ...(year ? { at: new Date(Date.UTC(year, 0)) } : {}),
});
const known = ['a', 'b', 'c', 'd', 'e'].map((id) => provider(id));

describe(`a client's providers (SEED=${SEED})`, () => {
  it('are the general practitioners, then the care team, then those of the encounters, latest first, each once', () => {
    const facts = [
      link('e', 3, 2025),
      link('d', 3, 2026),
      link('c', 2, 2001),
      link('b', 1, undefined, 1),
      link('a', 1),
      link('a', 3, 2026, 1),
    ];
    expect(resolveProviders([client, ...known, ...facts]).get('c-1')).toEqual({
      providers: ['a', 'b', 'c', 'd', 'e'],
      unresolved: 0,
    });
  });

  it('whose time is not known come last of their rank', () => {
    expect(resolveProviders([client, ...known, link('a', 3), link('b', 3, 1950)]).get('c-1')?.providers).toEqual([
      'b',
      'a',
    ]);
  });

  it('that nothing else tells apart come in the order of their ids in UTF-8', () => {
    const alike = ['\u{1f600}', '\uff61', 'a'].flatMap((id) => [provider(id), link(id, 1)]);
    expect(resolveProviders([client, ...alike]).get('c-1')?.providers).toEqual(['a', '\uff61', '\u{1f600}']);
  });

  it('are found through roles, also where the role names its practitioner by identifier', () => {
    const facts: ReferenceFact[] = [
      { type: 'role', key: 'role-1', practitionerKey: 'npi|1' },
      provider('a', 'npi|1'),
      provider('a', 'Practitioner/a'),
      client,
      link('role-1', 2),
      link('Practitioner/a', 3, 2020),
    ];
    expect(resolveProviders(facts).get('c-1')).toEqual({ providers: ['a'], unresolved: 0 });
  });

  it('a key that means two people means nobody', () => {
    const facts = [
      client,
      provider('a', 'npi|1'),
      provider('b', 'npi|1'),
      provider('b', 'npi|2'),
      link('npi|1', 1),
      link('npi|2', 3),
    ];
    expect(resolveProviders(facts).get('c-1')).toEqual({ providers: ['b'], unresolved: 1 });
  });

  it('whom nobody knows are counted; links of unknown clients count for nothing', () => {
    expect(resolveProviders([client, link('x', 1)])).toEqual(new Map([['c-1', { providers: [], unresolved: 1 }]]));
    expect(resolveProviders([...known, link('a', 1)])).toEqual(new Map());
  });

  it('do not depend on the order in which files and resources came', () => {
    const year = fc.option(fc.integer({ min: 2000, max: 2003 }), { nil: undefined });
    const links = fc.array(
      fc
        .tuple(fc.constantFrom('a', 'b', 'c', 'r', 'x'), fc.constantFrom(1, 2, 3), year, fc.nat(2))
        .map((parts) => link(...parts)),
    );
    const role: ReferenceFact = { type: 'role', key: 'r', practitionerKey: 'd' };
    const facts = links.chain((some) => {
      const all: ReferenceFact[] = [...some, ...known, client, role];
      return fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }));
    });
    fc.assert(
      fc.property(facts, ([ordered, shuffled]) => {
        expect(resolveProviders(shuffled)).toEqual(resolveProviders(ordered));
      }),
      { seed: SEED, numRuns: 1000 },
    );
  });
});
