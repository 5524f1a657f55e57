import { Buffer } from 'node:buffer';
import type { PersonKind } from '../../../people/model/person.js';
import { PROVIDERS_MAX } from '../../../people/model/person-field-rules.js';
import type { LinkReference, LostReason, ReadRow, ResourceReference, Version } from '../row/import-row.js';
import { KeyIndex } from './key-index.js';
import { knownId, parseLiteralKey, uuidTargets } from './reference-key.js';
import { isNewer } from './resource-version.js';

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
  /** How many references lead to none of them. Repeated references with the same key count once. */
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
  lost?: Map<LostReason, number>;
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
  /** The index of each provider key that a link has. */
  private readonly indexByKey = new Map<string, number>();
  private readonly linksById = new Map<string, ClientLinks>();
  private readonly linksByKey = new Map<string, ClientLinks>();
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
    else this.addAlias(event);
  }

  /** External ids of providers to which links may lead, in this import or from earlier ones. */
  candidates(): string[] {
    const ids = this.destinations().flatMap((to) => ('externalId' in to ? [to.externalId] : []));
    return [...new Set(ids)];
  }

  /** The providers of each client that has links, by its external id. */
  resolve(found: FoundProviders): Map<string, ResolvedProviders> {
    return new Map(this.resolveEach(found));
  }

  /** Resolves one client at a time, so that the caller can yield to the event loop. */
  *resolveEach({ mirrorable, rejected }: FoundProviders): Generator<[string, ResolvedProviders]> {
    const destinations = this.destinations().map((to): Destination => {
      if ('lost' in to || mirrorable.has(to.externalId)) return to;
      return { lost: rejected.has(to.externalId) ? 'rejected' : 'unknown' };
    });
    for (const [client, links] of this.linksByClient()) yield [client, resolveClient(links, destinations)];
  }

  private linksByClient(): Map<string, ClientLinks[]> {
    const byClient = new Map<string, ClientLinks[]>();
    for (const [client, links] of this.linksById) if (links.best || links.lost) byClient.set(client, [links]);
    for (const [key, links] of this.linksByKey) {
      const client = this.clientOf(key);
      if (client === undefined) continue;
      const known = byClient.get(client);
      if (known) known.push(links);
      else byClient.set(client, [links]);
    }
    return byClient;
  }

  private grow(isNew: boolean): void {
    if (isNew && ++this.count > this.mostReferences) throw new TooManyReferences(this.mostReferences);
  }

  private addRow(row: ReadRow): void {
    const { kind, externalId } = row.is === 'person' ? row.person : row;
    if (kind !== 'client' || externalId === undefined || !row.version) return;
    const known = this.linksById.get(externalId);
    const isOutdated = known?.version !== undefined && isNewer(known.version, row.version);
    this.outdatedClient = isOutdated ? externalId : undefined;
    if (isOutdated) return;
    this.grow(known === undefined);
    this.linksById.set(externalId, { version: row.version });
  }

  private addAlias({ kind, key, externalId }: Extract<ResourceReference, { type: 'alias' }>): void {
    const literal = parseLiteralKey(key);
    this.bases.add(literal?.base);
    // Many clients have only a key that tells the external id anyway.
    const isPlain = kind === 'client' && literal && literal.base === undefined && literal.id === externalId;
    if (!isPlain || this.idSystems.length > 0) this.grow(this.aliases[kind].add(key, externalId));
  }

  private addLink({ client, provider, rank, at, position }: LinkReference): void {
    if ('externalId' in client && client.externalId === this.outdatedClient) return;
    const [all, name] = 'externalId' in client ? [this.linksById, client.externalId] : [this.linksByKey, client.key];
    const links = all.get(name) ?? {};
    this.grow(!all.has(name));
    all.set(name, links);
    if ('lost' in provider) {
      links.lost ??= new Map();
      countLost(links.lost, provider.lost);
      return;
    }
    const index = this.indexByKey.get(provider.key) ?? this.indexByKey.size;
    this.grow(index === this.indexByKey.size);
    this.indexByKey.set(provider.key, index);
    links.best ??= new Map();
    this.grow(!links.best.has(index));
    keepBest(links.best, index, { rank, at, position });
  }

  /** What each key leads to, by its index. */
  private destinations(): Destination[] {
    return [...this.indexByKey.keys()].map((key) => this.destinationOf(key));
  }

  private destinationOf(key: string): Destination {
    const practitioners = find('provider', this.practitionersByRole, key);
    const ids = [key, ...practitioners].map((one) =>
      one === null ? [] : find('provider', this.aliases.provider, one),
    );
    const [externalId, another] = new Set(ids.flat());
    if (another !== undefined) return { lost: 'ambiguous' };
    if (externalId !== undefined) return { externalId };
    const practitioner = practitioners.length > 0 ? practitioners.find((one) => one !== null) : key;
    return practitioner ? this.earlierDestination(practitioner) : { lost: 'role-without-practitioner' };
  }

  /** The provider from an earlier import that a key means, because no resource of this import has it. */
  private earlierDestination(key: string): Destination {
    const literal = parseLiteralKey(key);
    if (literal?.base !== undefined && !literal.isOwn && !this.bases.has(literal.base)) return { lost: 'other-server' };
    // Another server's resource with the same id is not the same person.
    const externalId = this.aliases.provider.has(key) ? undefined : knownId('provider', key, this.idSystems);
    return externalId === undefined ? { lost: 'unknown' } : { externalId };
  }

  private clientOf(key: string): string | undefined {
    const [externalId, another] = find('client', this.aliases.client, key);
    if (externalId !== undefined) return another === undefined ? externalId : undefined;
    const literal = parseLiteralKey(key);
    const isForeign = literal?.base !== undefined && !literal.isOwn;
    return isForeign || this.aliases.client.has(key) ? undefined : knownId('client', key, this.idSystems);
  }
}

function find<Value>(kind: PersonKind, index: KeyIndex<Value>, key: string): Value[] {
  const found = index.find(key);
  return found.length > 0 ? found : uuidTargets(kind, key).flatMap((target) => index.find(target));
}

function countLost(lost: Map<LostReason, number>, reason: LostReason, times = 1): void {
  lost.set(reason, (lost.get(reason) ?? 0) + times);
}

function keepBest<Key>(best: Map<Key, BestLink>, key: Key, link: BestLink): void {
  const known = best.get(key);
  if (!known || compareLinks(link, known) < 0) best.set(key, link);
}

/** Lower rank first, then latest first with unknown times last, then by position. */
function compareLinks(a: BestLink, b: BestLink): number {
  const later = (b.at?.getTime() ?? Number.NEGATIVE_INFINITY) - (a.at?.getTime() ?? Number.NEGATIVE_INFINITY);
  return a.rank - b.rank || later || a.position - b.position;
}

/** Compares texts by their UTF-8, as the database does. */
function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** @param destinations by the index of the provider's key */
function resolveClient(collected: ClientLinks[], destinations: Destination[]): ResolvedProviders {
  const bestByIndex = new Map<number, BestLink>();
  const lost = new Map<LostReason, number>();
  for (const links of collected) {
    for (const [index, link] of links.best ?? []) keepBest(bestByIndex, index, link);
    for (const [reason, times] of links.lost ?? []) countLost(lost, reason, times);
  }
  const best = new Map<string, BestLink>();
  for (const [index, link] of bestByIndex) {
    const to = destinations[index] ?? { lost: 'unknown' };
    if ('lost' in to) countLost(lost, to.lost);
    else keepBest(best, to.externalId, link);
  }
  const sorted = [...best].sort(([idA, a], [idB, b]) => compareLinks(a, b) || compareBytes(idA, idB));
  const kept = sorted.slice(0, PROVIDERS_MAX);
  return { providers: kept.map(([id]) => id), replaces: kept.some(([, { rank }]) => rank === 1), lost };
}
