import type { PersonKind } from '../../../people/rules/person.js';
import { PROVIDERS_MAX } from '../../../people/rules/person-field-rules.js';
import type { LinkReference, LostReason, ReadRow, ResourceReference, Version } from '../row/import-row.js';
import { keyParts, knownId } from './reference-key.js';

/** Thrown when an import has more references than it may hold in memory. */
export class TooManyReferences extends Error {
  constructor(limit: number) {
    super(`The import has more than ${limit} references between resources.`);
    this.name = 'TooManyReferences';
  }
}

export interface ResolvedProviders {
  /** External ids, primary first. */
  providers: string[];
  /** True if one of them is a general practitioner. In an upsert, the list then replaces the current one. */
  replaces: boolean;
  /** How many references lead to none of them. Equal ones count once. */
  lost: Map<LostReason, number>;
}

export interface FoundProviders {
  /** Providers that a client may be given. */
  mirrorable: ReadonlySet<string>;
  /** Providers whose rows in this import were rejected. */
  rejected: ReadonlySet<string>;
}

type BestLink = Pick<LinkReference, 'rank' | 'at' | 'position'>;

/** The links of a client, collected under its external id or under one of its keys. */
interface ClientLinks {
  /** The version of the Patient that has these links. */
  version?: Version;
  /** By the index of the provider's key. */
  best?: Map<number, BestLink>;
}

type Destination = { externalId: string } | { lost: LostReason };

/**
 * Resolves which providers the clients of an import have, from the references in all of its files, in any order. A
 * repeated link takes no memory, so that many encounters of few clients stay small.
 */
export class ProviderReferences {
  private count = 0;
  private readonly aliases = { provider: new KeyIndex<string>(), client: new KeyIndex<string>() };
  private readonly practitionersByRole = new KeyIndex<string | null>();
  /** Base URLs of the people in the import. */
  private readonly bases = new Set<string | undefined>();
  /** The index of each provider key that a link has, or of `!` and the reason why it has none. */
  private readonly indexByKey = new Map<string, number>();
  /** By the key of the client, or by its external id after `=`. */
  private readonly links = new Map<string, ClientLinks>();
  /** The client of the last row, if a newer version of it was added before. */
  private outdatedClient: string | undefined;

  /** @param mostReferences maximum number of keys, clients and links in memory */
  constructor(
    private readonly mostReferences: number,
    private readonly idSystems: readonly string[] = [],
  ) {}

  /**
   * Adds what was read. With the rows, only the links in the newest version of a Patient count; they must follow its row.
   * @throws TooManyReferences
   */
  add(event: ReadRow | ResourceReference): void {
    if (event.type === 'row') this.addRow(event);
    else if (event.type === 'link') this.addLink(event);
    else if (event.type === 'role') this.grow(this.practitionersByRole.add(event.key, event.practitionerKey));
    else {
      this.bases.add(keyParts(event.key).base);
      this.grow(this.aliases[event.kind].add(event.key, event.externalId));
    }
  }

  /** External ids of providers to which links may lead, in this import or from earlier ones. */
  candidates(): string[] {
    const ids = this.destinations().flatMap((to) => ('externalId' in to ? [to.externalId] : []));
    return [...new Set(ids)];
  }

  /** The providers of each client that has links, by its external id. */
  resolve({ mirrorable, rejected }: FoundProviders): Map<string, ResolvedProviders> {
    const destinations = this.destinations().map((to): Destination => {
      if ('lost' in to || mirrorable.has(to.externalId)) return to;
      return { lost: rejected.has(to.externalId) ? 'rejected' : 'unknown' };
    });
    const bestByClient = new Map<string, Map<number, BestLink>>();
    for (const [key, { best }] of this.links) {
      const externalId = key.startsWith('=') ? key.slice(1) : this.clientOf(key);
      if (externalId === undefined || !best) continue;
      const known = bestByClient.get(externalId);
      if (known) for (const [index, link] of best) keepBest(known, index, link);
      else bestByClient.set(externalId, best);
    }
    return new Map([...bestByClient].map(([client, best]) => [client, resolveClient(best, destinations)]));
  }

  private grow(isNew: boolean): void {
    if (isNew && ++this.count > this.mostReferences) throw new TooManyReferences(this.mostReferences);
  }

  private addRow(row: ReadRow): void {
    const { kind, externalId } = row.is === 'person' ? row.person : row;
    if (kind !== 'client' || externalId === undefined || !row.version) return;
    const known = this.links.get(`=${externalId}`);
    const isOutdated = known?.version !== undefined && isNewer(known.version, row.version);
    this.outdatedClient = isOutdated ? externalId : undefined;
    if (isOutdated) return;
    this.count -= known?.best?.size ?? 0;
    this.grow(known === undefined);
    this.links.set(`=${externalId}`, { version: row.version });
  }

  private addLink({ client, provider, rank, at, position }: LinkReference): void {
    const isOwn = 'externalId' in client;
    if (isOwn && client.externalId === this.outdatedClient) return;
    const links = this.known(this.links, isOwn ? `=${client.externalId}` : client.key, {});
    const key = 'lost' in provider ? `!${provider.lost}` : provider.key;
    const index = this.known(this.indexByKey, key, this.indexByKey.size);
    links.best ??= new Map();
    this.grow(!links.best.has(index));
    keepBest(links.best, index, { rank, at, position });
  }

  /** The value of a key, which is added if it is new. */
  private known<Value>(map: Map<string, Value>, key: string, added: Value): Value {
    const value = map.get(key) ?? added;
    this.grow(!map.has(key));
    map.set(key, value);
    return value;
  }

  private destinations(): Destination[] {
    return [...this.indexByKey.keys()].map((key) => this.destinationOf(key));
  }

  private destinationOf(key: string): Destination {
    if (key.startsWith('!')) return { lost: key.slice(1) as LostReason };
    const practitioners = this.practitionersByRole.find(key);
    const ids = [key, ...practitioners].flatMap((one) => (one === null ? [] : this.aliases.provider.find(one)));
    const [externalId, another] = new Set(ids);
    if (another !== undefined) return { lost: 'ambiguous' };
    if (externalId !== undefined) return { externalId };
    const practitioner = practitioners.length > 0 ? practitioners.find((one) => one !== null) : key;
    if (!practitioner) return { lost: 'role-without-practitioner' };
    if (this.isOnOtherServer(practitioner)) return { lost: 'other-server' };
    const earlierId = this.earlierId('provider', practitioner);
    return earlierId === undefined ? { lost: 'unknown' } : { externalId: earlierId };
  }

  /** The external id of the client that a key names: in this import, otherwise from an earlier one. */
  clientOf(key: string): string | undefined {
    const [externalId, another] = this.aliases.client.find(key);
    return another === undefined ? (externalId ?? this.earlierId('client', key)) : undefined;
  }

  /** The person from an earlier import that a key means, because no resource of this import has it. */
  private earlierId(kind: PersonKind, key: string): string | undefined {
    // Another server's resource with the same id is not the same person.
    if (this.isOnOtherServer(key) || this.aliases[kind].has(key)) return undefined;
    return knownId(kind, key, this.idSystems);
  }

  private isOnOtherServer(key: string): boolean {
    const { base, isOwn } = keyParts(key);
    return base !== undefined && !isOwn && !this.bases.has(base);
  }
}

function keepBest<Key>(best: Map<Key, BestLink>, key: Key, link: BestLink): void {
  const known = best.get(key);
  if (!known || compareLinks(link, known) < 0) best.set(key, link);
}

/** Lower rank first, then latest first with unknown times last, then by position. */
function compareLinks(a: BestLink, b: BestLink): number {
  return a.rank - b.rank || timeOf(b) - timeOf(a) || a.position - b.position;
}

/** Compares two versions of one resource: by time, then by number, then by place. An unknown one is older. */
export function isNewer(a: Version, b: Version): boolean {
  return (timeOf(a) - timeOf(b) || (a.no ?? -1) - (b.no ?? -1) || a.place - b.place) > 0;
}

function timeOf({ at }: { at?: Date }): number {
  return at?.getTime() ?? Number.NEGATIVE_INFINITY;
}

/** @param destinations by the index of the provider's key */
function resolveClient(bestByIndex: Map<number, BestLink>, destinations: Destination[]): ResolvedProviders {
  const lost = new Map<LostReason, number>();
  const best = new Map<string, BestLink>();
  for (const [index, link] of bestByIndex) {
    const to = destinations[index] ?? { lost: 'unknown' };
    if ('lost' in to) lost.set(to.lost, (lost.get(to.lost) ?? 0) + 1);
    else keepBest(best, to.externalId, link);
  }
  const sorted = [...best].sort(([idA, a], [idB, b]) => compareLinks(a, b) || (idA < idB ? -1 : 1));
  const kept = sorted.slice(0, PROVIDERS_MAX);
  return { providers: kept.map(([id]) => id), replaces: kept.some(([, { rank }]) => rank === 1), lost };
}

/** Maximum values of a key. More than one resource is ambiguous anyway, and null may be one of the values. */
const VALUES_MAX = 3;

/** The values of resources by their keys, found by references as far as base URLs allow. */
class KeyIndex<Value> {
  /** By key; those with a base URL also with `*` in place of it. */
  private readonly values = new Map<string, Value[]>();

  /** @returns false if nothing had to be stored */
  add(key: string, value: Value): boolean {
    const { target, base } = keyParts(key);
    if (base !== undefined) this.store(`${target} *`, value);
    return this.store(key, value);
  }

  private store(key: string, value: Value): boolean {
    const known = this.values.get(key) ?? [];
    if (known.length >= VALUES_MAX || known.includes(value)) return false;
    this.values.set(key, [...known, value]);
    return true;
  }

  /** True if a resource of any server has the type and id of this key. */
  has(key: string): boolean {
    const { target } = keyParts(key);
    return this.values.has(target) || this.values.has(`${target} *`);
  }

  /**
   * Finds the resources to which a key leads. An absolute URL leads to a resource of that server only. A relative one
   * leads to a resource of the same server. If either server is unknown, the type and id must suffice.
   */
  find(key: string): Value[] {
    const { target, base, isOwn } = keyParts(key);
    if (base === undefined) return this.values.get(target) ?? this.values.get(`${target} *`) ?? [];
    return this.values.get(`${target} ${base}`) ?? (isOwn ? this.values.get(target) : undefined) ?? [];
  }
}
