import fc from 'fast-check';
import { propertyRuns } from '../../../config/property-runs.spec-support.js';
import { PROVIDERS_MAX } from '../../../people/rules/person-field-rules.js';
import type { LinkReference, LostReason, ResourceReference } from '../row/import-row.js';
import {
  type FoundProviders,
  ProviderReferences,
  type ResolvedProviders,
  TooManyReferences,
} from './provider-references.js';

type Alias = Extract<ResourceReference, { type: 'alias' }>;

const alias = (kind: Alias['kind'], key: string, externalId: string): Alias => ({
  type: 'alias',
  kind,
  key,
  externalId,
});
const provider = (id: string): Alias => alias('provider', `provider/Practitioner/${id}`, id);
const role = (key: string, practitionerKey: string | null): ResourceReference => ({
  type: 'role',
  key,
  practitionerKey,
});
const link = (
  to: string | { lost: LostReason },
  rank: 1 | 2 | 3 = 1,
  at?: number,
  position = 0,
  client: LinkReference['client'] = { key: 'client/Patient/c1' },
): LinkReference => ({
  ...{ type: 'link', client, rank, position },
  provider:
    typeof to === 'string' ? { key: to.includes('/') || to.includes('|') ? to : `provider/Practitioner/${to}` } : to,
  ...(at !== undefined && { at: new Date(Date.UTC(at, 0)) }),
});

function filled(events: ResourceReference[], idSystems: readonly string[] = []): ProviderReferences {
  const references = new ProviderReferences(1_000_000, idSystems);
  for (const event of events) references.add(event);
  return references;
}

const known = (...ids: string[]): FoundProviders => ({ mirrorable: new Set(ids), rejected: new Set() });
const all = known('a', 'b', 'c', 'd', 'e');
const resolved = (events: ResourceReference[], found = all) => filled(events).resolve(found).get('c1');

describe("a client's providers", () => {
  it('are ordered by rank, then latest first, then by position', () => {
    const links = [
      link('e', 3, 2025),
      link('d', 3, 2026),
      link('c', 2, 2001),
      link('b', 1, undefined, 1),
      link('a', 1),
      link('a', 3, 2026, 1),
    ];
    expect(resolved(links)).toEqual({ providers: ['a', 'b', 'c', 'd', 'e'], replaces: true, lost: new Map() });
  });

  it('are at most PROVIDERS_MAX', () => {
    const ids = Array.from({ length: PROVIDERS_MAX + 9 }, (_, at) => `p${at}`);
    const links = ids.map((id, position) => link(id, 1, undefined, position));
    expect(resolved(links, known(...ids))?.providers).toEqual(ids.slice(0, PROVIDERS_MAX));
  });

  it('replace the current ones only if a general practitioner is among those that can be mirrored', () => {
    expect(resolved([link('a', 1), link('b', 2)])?.replaces).toBe(true);
    expect(resolved([link('x', 1), link('b', 2)])).toEqual({
      providers: ['b'],
      replaces: false,
      lost: new Map([['unknown', 1]]),
    });
  });

  it('are found through roles, also if a role names its practitioner by identifier', () => {
    const events = [
      role('provider/PractitionerRole/r1', 'provider|npi|1'),
      alias('provider', 'provider|npi|1', 'a'),
      provider('a'),
      link('provider/PractitionerRole/r1', 2),
      link('a', 3, 2020),
    ];
    expect(resolved(events)).toMatchObject({ providers: ['a'], lost: new Map() });
  });

  it('are lost if their key means two people, unless they have the same id', () => {
    const events = [
      alias('provider', 'provider|npi|1', 'a'),
      alias('provider', 'provider|npi|2', 'b'),
      link('provider|npi|1', 1),
      link('provider|npi|2', 3),
    ];
    expect(resolved([...events, alias('provider', 'provider|npi|1', 'a')])?.providers).toEqual(['a', 'b']);
    expect(resolved([...events, alias('provider', 'provider|npi|1', 'b')])).toEqual({
      providers: ['b'],
      replaces: false,
      lost: new Map([['ambiguous', 1]]),
    });
  });
});

describe('candidates', () => {
  it('are the providers of this or an earlier import to which links lead', () => {
    const events = [
      alias('provider', 'provider|npi|1', 'a'),
      provider('unlinked'),
      role('provider/PractitionerRole/r1', 'provider/Practitioner/c'),
      link('provider|npi|1'),
      link('provider|npi|2'),
      link('b'),
      link('b', 3),
      link('provider/PractitionerRole/r1'),
      link('provider/Practitioner/d other.example'),
    ];
    expect(filled(events).candidates().sort()).toEqual(['a', 'b', 'c']);
  });
});

describe('memory', () => {
  it('does not grow with repeated links', () => {
    const references = new ProviderReferences(110);
    const events = fc.sample(fc.tuple(fc.nat(9), fc.nat(4), fc.integer({ min: 2000, max: 2026 })), {
      numRuns: 20_000,
      seed: 1,
    });
    for (const [client, to, at] of events) {
      references.add(link(`p${to}`, 3, at, 0, { key: `client/Patient/c${client}` }));
      references.add(link({ lost: 'display-only' }, 3, at, 0, { key: `client/Patient/c${client}` }));
      references.add(provider(`p${to}`));
      references.add(alias('client', `client/Patient/c${client}`, `c${client}`));
    }
    expect(references.resolve(known('p0')).size).toBe(10);
  });

  it('is limited', () => {
    const references = new ProviderReferences(100);
    const add = (at: number) => references.add(link(`p${at}`));
    for (let at = 0; at < 49; at++) add(at);
    expect(() => add(49)).toThrow(TooManyReferences);
  });

  it('does not grow with the versions of a person', () => {
    const references = new ProviderReferences(10);
    for (let no = 0; no < 1_000; no++) {
      const person = { kind: 'client', externalId: 'c1', firstName: 'Ann', lastName: 'Ash' } as const;
      references.add({ type: 'row', line: 1, is: 'person', person, version: { no, place: no } });
      references.add(link('a', 1, undefined, 0, { externalId: 'c1' }));
    }
    references.add(provider('a'));
    expect(references.resolve(all).get('c1')?.providers).toEqual(['a']);
  });

  it('does not grow with the people who share an identifier', () => {
    const references = new ProviderReferences(10);
    for (let at = 0; at < 1_000; at++) references.add(alias('provider', 'provider|npi|0', `p${at}`));
    references.add(link('provider|npi|0'));
    expect(references.resolve(all).get('c1')?.lost).toEqual(new Map([['ambiguous', 1]]));
  });
});

/** The same rules without memory limits: looks at every event for each link. */
function resolveNaively(
  events: ResourceReference[],
  found: FoundProviders,
  idSystems: readonly string[],
): Map<string, ResolvedProviders> {
  const aliases = events.filter((event) => event.type === 'alias');
  const roles = events.filter((event) => event.type === 'role');
  const parts = (key: string) => {
    const [target = '', base] = key.split(' ');
    return { target, base: base?.replace('~', ''), isForeign: base !== undefined && !base.startsWith('~') };
  };
  const keysFor = <Item extends { key: string }>(items: Item[], wanted: string): Item[] => {
    const { target, base, isForeign } = parts(wanted);
    const same = items.filter(({ key }) => parts(key).target === target);
    const on = (server: string | undefined) => same.filter(({ key }) => parts(key).base === server);
    if (isForeign || on(base).length > 0) return on(base);
    return base === undefined ? same : on(undefined);
  };
  const isElsewhere = (key: string): boolean =>
    parts(key).isForeign && !aliases.some((one) => parts(one.key).base === parts(key).base);
  const earlier = (kind: Alias['kind'], key: string): string | undefined => {
    const { target } = parts(key);
    if (isElsewhere(key) || aliases.some((one) => one.kind === kind && parts(one.key).target === target)) {
      return undefined;
    }
    const [, system, value] = key.split('|');
    if (idSystems.length > 0) return system && idSystems.includes(system) ? value : undefined;
    return /^\w+\/(?:Practitioner|Patient)\/(.*)$/.exec(target)?.[1];
  };
  const people = (kind: Alias['kind'], key: string) =>
    keysFor(aliases, key).flatMap((one) => (one.kind === kind ? one.externalId : []));
  const lead = (key: string): { externalId: string } | { lost: LostReason } => {
    const named = keysFor(roles, key).map(({ practitionerKey }) => practitionerKey);
    const practitioners = named.filter((one) => one !== null);
    const ids = new Set([key, ...practitioners].flatMap((one) => people('provider', one)));
    if (ids.size > 1) return { lost: 'ambiguous' };
    if (named.length > 0 && practitioners.length === 0 && ids.size === 0) return { lost: 'role-without-practitioner' };
    const last = practitioners[0] ?? key;
    const externalId = [...ids][0] ?? earlier('provider', last);
    if (externalId === undefined) return { lost: isElsewhere(last) ? 'other-server' : 'unknown' };
    if (found.mirrorable.has(externalId)) return { externalId };
    return { lost: found.rejected.has(externalId) ? 'rejected' : 'unknown' };
  };
  const clientOf = ({ client }: LinkReference): string | undefined => {
    if ('externalId' in client) return client.externalId;
    const [id, another] = new Set(people('client', client.key));
    return another === undefined ? (id ?? earlier('client', client.key)) : undefined;
  };

  const links = events.filter((event) => event.type === 'link');
  const clients = new Set(links.flatMap((one) => clientOf(one) ?? []));
  const resolveOne = (id: string): ResolvedProviders => {
    const mine = links.filter((one) => clientOf(one) === id);
    const keyOf = ({ provider: to }: LinkReference) => ('key' in to ? to.key : to.lost);
    const leads = mine.map((one) => ({ ...one, to: 'key' in one.provider ? lead(one.provider.key) : one.provider }));
    const lost = new Map<LostReason, number>();
    for (const [, { to }] of new Map(leads.map((one) => [keyOf(one), one]))) {
      if ('lost' in to) lost.set(to.lost, (lost.get(to.lost) ?? 0) + 1);
    }
    const kept = leads.flatMap((one) => ('externalId' in one.to ? [{ ...one, id: one.to.externalId }] : []));
    const time = ({ at }: LinkReference) => at?.getTime() ?? -1e15;
    kept.sort((a, b) => a.rank - b.rank || time(b) - time(a) || a.position - b.position || (a.id < b.id ? -1 : 1));
    const providers = [...new Set(kept.map((one) => one.id))];
    return { providers, replaces: kept.some(({ rank }) => rank === 1), lost };
  };
  return new Map([...clients].map((id) => [id, resolveOne(id)]));
}

describe('ProviderReferences', () => {
  const ids = ['a', 'b', 'c'];
  const bases = ['', ' x.example', ' y.example'];
  const marks = [...bases, ' ~x.example', ' ~y.example'];
  const literal = (start: string, names: string[], ends: string[]) =>
    fc.tuple(fc.constantFrom(...names), fc.constantFrom(...ends)).map(([name, end]) => `${start}/${name}${end}`);
  const personKey = (kind: Alias['kind'], ends: string[]) =>
    fc.oneof(
      literal(kind === 'provider' ? 'provider/Practitioner' : 'client/Patient', ids, ends),
      fc.constantFrom('mrn|1', 'mrn|2', 'npi|a').map((one) => `${kind}|${one}`),
    );
  const roleKey = (ends: string[]) => literal('provider/PractitionerRole', ['r', 's'], ends);
  const aliases = (kind: Alias['kind']) =>
    fc.tuple(personKey(kind, bases), fc.constantFrom(...ids)).map(([key, id]) => alias(kind, key, id));
  // One practitioner each, because only one that is not in the import is tried.
  const roles = roleKey(bases).map((key) => role(key, key.includes('/r') ? 'provider/Practitioner/a' : null));
  const links = fc.record({
    type: fc.constant('link' as const),
    client: fc.oneof(
      fc.record({ externalId: fc.constantFrom(...ids) }),
      fc.record({ key: personKey('client', marks) }),
    ),
    provider: fc.oneof(
      { arbitrary: fc.record({ key: fc.oneof(personKey('provider', marks), roleKey(marks)) }), weight: 6 },
      { arbitrary: fc.constant({ lost: 'display-only' } as const), weight: 1 },
    ),
    rank: fc.constantFrom(1 as const, 2 as const, 3 as const),
    at: fc.constantFrom(undefined, new Date('2000-01-01'), new Date('2001-01-01')),
    position: fc.nat(2),
  });
  const event = fc.oneof(aliases('provider'), aliases('client'), roles, links, links, links, links);
  const found = fc.record({
    mirrorable: fc.subarray([...ids, '1', '2']).map((some) => new Set(some)),
    rejected: fc.subarray(ids).map((some) => new Set(some)),
  });

  it('resolves like a naive implementation, in any order of events', () => {
    const events = fc.array<ResourceReference>(event, { maxLength: 30 });
    fc.assert(
      fc.property(events, found, fc.constantFrom([], ['mrn', 'npi']), (some, who, idSystems) => {
        const expected = resolveNaively(some, who, idSystems);
        expect(filled(some, idSystems).resolve(who)).toEqual(expected);
        expect(filled(some.toReversed(), idSystems).resolve(who)).toEqual(expected);
      }),
      propertyRuns(),
    );
  });
});
