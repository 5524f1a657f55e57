import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { NOW } from './read-all.spec-support.js';
import { resolveProviders, upsertedProviders } from './resolve-providers.spec-support.js';
import type { LinkReference, ResourceReference } from './row/import-row.js';

const provider = (externalId: string, key = externalId): ResourceReference => ({
  type: 'alias',
  kind: 'provider',
  key,
  externalId,
});
const client: ResourceReference = { type: 'alias', kind: 'client', key: 'client', externalId: 'c-1' };
const link = (providerKey: string, rank: 1 | 2 | 3, year?: number, position = 0): LinkReference => ({
  type: 'link',
  clientKey: 'client',
  providerKey,
  form: 'identifier',
  rank,
  position,
  ...(year ? { at: new Date(Date.UTC(year, 0)) } : {}),
});
const known = ['a', 'b', 'c', 'd', 'e'].map((id) => provider(id));

describe('a client’s providers', () => {
  it('are the general practitioners, then the care team, then those of the encounters, latest first, each once', () => {
    const facts = [
      link('e', 3, 2025),
      link('d', 3, 2026),
      link('c', 2, 2001),
      link('b', 1, undefined, 1),
      link('a', 1),
      link('a', 3, 2026, 1),
    ];
    expect(resolveProviders([client, ...known, ...facts], { now: NOW }).get('c-1')).toMatchObject({
      providers: ['a', 'b', 'c', 'd', 'e'],
      unresolved: 0,
    });
  });

  it('whose time is not known come last of their rank', () => {
    expect(
      resolveProviders([client, ...known, link('a', 3), link('b', 3, 1950)], { now: NOW }).get('c-1')?.providers,
    ).toEqual(['b', 'a']);
  });

  it('that nothing else tells apart come in the order of their ids in UTF-8', () => {
    const alike = ['\u{1f600}', '\uff61', 'a'].flatMap((id) => [provider(id), link(id, 1)]);
    expect(resolveProviders([client, ...alike], { now: NOW }).get('c-1')?.providers).toEqual([
      'a',
      '\uff61',
      '\u{1f600}',
    ]);
  });

  it('are found through roles, also where the role names its practitioner by identifier', () => {
    const facts: ResourceReference[] = [
      { type: 'role', key: 'role-1', practitionerKey: 'npi|1' },
      provider('a', 'npi|1'),
      provider('a', 'Practitioner/a'),
      client,
      link('role-1', 2),
      link('Practitioner/a', 3, 2020),
    ];
    expect(resolveProviders(facts, { now: NOW }).get('c-1')).toMatchObject({ providers: ['a'], unresolved: 0 });
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
    expect(resolveProviders(facts, { now: NOW }).get('c-1')).toMatchObject({ providers: ['b'], unresolved: 1 });
  });

  it('whom nobody knows are counted; links of unknown clients count for nothing', () => {
    expect(resolveProviders([client, link('x', 1)], { now: NOW })).toEqual(
      new Map([['c-1', { providers: [], replaces: false, unresolved: 1 }]]),
    );
    expect(resolveProviders([...known, link('a', 1)], { now: NOW })).toEqual(new Map());
  });

  it('are not those whose care has ended, nor of encounters long ago, by the newest date of the files', () => {
    const on = (day: string) => new Date(`${day}T00:00:00Z`);
    const facts: ResourceReference[] = [
      { ...link('a', 2), at: on('1991-01-01'), ends: on('1995-01-01') },
      { ...link('b', 2), at: on('1991-01-01'), ends: on('2030-01-01') },
      { ...link('c', 3), at: on('2019-05-31') },
      { ...link('d', 3), at: on('2020-05-31') },
      { ...link('e', 3), at: on('2019-06-01') },
      { ...link('r', 2), at: on('2001-01-01') },
      { type: 'role', key: 'r', practitionerKey: 'a', ends: on('2020-05-01') },
    ];
    const listOf = (window: object) =>
      resolveProviders([client, ...known, ...facts], { now: NOW, ...window }).get('c-1')?.providers;
    expect(listOf({})).toEqual(['b', 'd', 'e']);
    expect(listOf({ encounterSince: on('2000-01-01') })).toEqual(['b', 'd', 'e', 'c']);
    expect(listOf({ now: on('2019-12-31') })).toEqual(['a', 'b', 'd', 'e', 'c']);
  });

  it('are in an upsert replaced by general practitioners alone', () => {
    const found = (rank: 1 | 2 | 3) =>
      resolveProviders([client, ...known, link('b', rank), link('a', 3, 2026)], { now: NOW }).get('c-1');
    expect(upsertedProviders(['c', 'a'], found(1))).toEqual(['b', 'a']);
    expect(upsertedProviders(['c', 'a'], found(2))).toEqual(['c', 'a', 'b']);
    expect(upsertedProviders(['c', 'a'], undefined)).toEqual(['c', 'a']);
  });

  it('do not depend on the order in which files and resources came', () => {
    const year = fc.option(fc.integer({ min: 2000, max: 2003 }), { nil: undefined });
    const links = fc.array(
      fc
        .tuple(fc.constantFrom('a', 'b', 'c', 'r', 'x'), fc.constantFrom(1, 2, 3), year, fc.nat(2))
        .map((parts) => link(...parts)),
    );
    const role: ResourceReference = { type: 'role', key: 'r', practitionerKey: 'd' };
    const facts = links.chain((some) => {
      const all: ResourceReference[] = [...some, ...known, client, role];
      return fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }));
    });
    fc.assert(
      fc.property(facts, ([ordered, shuffled]) => {
        expect(resolveProviders(shuffled, { now: NOW })).toEqual(resolveProviders(ordered, { now: NOW }));
      }),
      propertyRuns(),
    );
  });
});
