import type { AliasFact, LinkFact, ReferenceFact, RoleFact } from './import-row.js';

/** A client's providers, the first being the primary; `unresolved` counts references that mean nobody known. */
export interface ResolvedProviders {
  providers: string[];
  unresolved: number;
}

/** Key to external id; a key that means two people means nobody (FHIR R4: a conditional reference matches one). */
class KeyRing {
  private readonly ids = new Map<string, Set<string>>();

  add(key: string, externalId: string): void {
    const known = this.ids.get(key);
    if (known) known.add(externalId);
    else this.ids.set(key, new Set([externalId]));
  }

  all(key: string): Iterable<string> {
    return this.ids.get(key) ?? [];
  }

  one(key: string): string | undefined {
    const [only, another] = this.all(key);
    return another === undefined ? only : undefined;
  }
}

/** In the order of their UTF-8, as the database has it; JavaScript's own order is that of UTF-16. */
function byBytes(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

function inOrder(a: LinkFact & { externalId: string }, b: LinkFact & { externalId: string }): number {
  const newer = (b.at?.getTime() ?? Number.NEGATIVE_INFINITY) - (a.at?.getTime() ?? Number.NEGATIVE_INFINITY);
  return a.rank - b.rank || newer || a.position - b.position || byBytes(a.externalId, b.externalId);
}

/**
 * The rule by which a client's providers follow from the facts of all files of an import, whatever their order: by
 * rank, then the latest first (unknown times last), then by position, then by external id in UTF-8; each provider once. It
 * holds everything in memory: it is the specification of what the import does in SQL.
 * @returns by the clients' external id; clients without any link are absent
 */
export function resolveProviders(facts: Iterable<ReferenceFact>): Map<string, ResolvedProviders> {
  const aliases: AliasFact[] = [];
  const roles: RoleFact[] = [];
  const links: LinkFact[] = [];
  for (const fact of facts) {
    if (fact.type === 'alias') aliases.push(fact);
    else if (fact.type === 'role') roles.push(fact);
    else links.push(fact);
  }
  const people = new KeyRing();
  for (const { key, externalId } of aliases) people.add(key, externalId);
  const providers = new KeyRing();
  for (const { key, externalId, kind } of aliases) if (kind === 'provider') providers.add(key, externalId);
  for (const { key, practitionerKey } of roles) {
    for (const externalId of people.all(practitionerKey)) providers.add(key, externalId);
  }

  const found = new Map<string, { known: (LinkFact & { externalId: string })[]; unresolved: number }>();
  for (const link of links) {
    const client = people.one(link.clientKey);
    if (client === undefined) continue;
    const entry = found.get(client) ?? { known: [], unresolved: 0 };
    found.set(client, entry);
    const externalId = providers.one(link.providerKey);
    if (externalId === undefined) entry.unresolved++;
    else entry.known.push({ ...link, externalId });
  }
  return new Map(
    [...found].map(([client, { known, unresolved }]) => {
      const ordered = known.sort(inOrder).map(({ externalId }) => externalId);
      return [client, { providers: [...new Set(ordered)], unresolved }];
    }),
  );
}
