import type { LinkReference, ResourceReference } from './row/import-row.js';

type AliasReference = Extract<ResourceReference, { type: 'alias' }>;
type RoleReference = Extract<ResourceReference, { type: 'role' }>;

/** A client's providers, the first being the primary; `unresolved` counts references that mean nobody known. */
export interface ResolvedProviders {
  providers: string[];
  /** A generalPractitioner is among them: in an upsert the list takes the place of the one before. */
  replaces: boolean;
  unresolved: number;
}

/** By when care is judged. */
export interface CareWindow {
  /** The present. */
  now: Date;
  /** Encounters before it name nobody; otherwise those of the last 365 days do. */
  encounterSince?: Date;
}

/** Milliseconds before the newest date of the files in which an encounter names a provider, unless told. */
export const ENCOUNTER_MS = 365 * 86_400_000;

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

function inOrder(a: LinkReference & { externalId: string }, b: LinkReference & { externalId: string }): number {
  const newer = (b.at?.getTime() ?? Number.NEGATIVE_INFINITY) - (a.at?.getTime() ?? Number.NEGATIVE_INFINITY);
  return a.rank - b.rank || newer || a.position - b.position || byBytes(a.externalId, b.externalId);
}

/** The facts that hold: measured by the newest date of the files that is not to come, since an export may be old. */
function current<Fact extends RoleReference | LinkReference>(
  facts: Fact[],
  all: (RoleReference | LinkReference)[],
  window: CareWindow,
) {
  const dates = all.flatMap((fact) => [fact.ends, 'at' in fact ? fact.at : undefined]);
  const past = dates.filter((date): date is Date => date !== undefined && date <= window.now);
  const asOf = past.reduce((newest, date) => Math.max(newest, date.getTime()), Number.NEGATIVE_INFINITY);
  const at = Number.isFinite(asOf) ? asOf : window.now.getTime();
  const since = window.encounterSince?.getTime() ?? at - ENCOUNTER_MS;
  const isOld = (fact: RoleReference | LinkReference) =>
    fact.type === 'link' && fact.rank === 3 && fact.at && +fact.at < since;
  return facts.filter((fact) => !(fact.ends && fact.ends.getTime() <= at) && !isOld(fact));
}

/**
 * The rule by which a client's providers follow from the facts of all files of an import, whatever their order: by
 * rank, then the latest first (unknown times last), then by position, then by external id in UTF-8; each provider once.
 * Care that has ended names nobody. It holds everything in memory: it is the specification of what the import does in SQL.
 * @returns by the clients' external id; clients without any link are absent
 */
export function resolveProviders(
  facts: Iterable<ResourceReference>,
  window: CareWindow,
): Map<string, ResolvedProviders> {
  const aliases: AliasReference[] = [];
  const roles: RoleReference[] = [];
  const links: LinkReference[] = [];
  for (const fact of facts) {
    if (fact.type === 'alias') aliases.push(fact);
    else if (fact.type === 'role') roles.push(fact);
    else links.push(fact);
  }
  const dated = [...roles, ...links];
  const people = new KeyRing();
  for (const { key, externalId } of aliases) people.add(key, externalId);
  const providers = new KeyRing();
  for (const { key, externalId, kind } of aliases) if (kind === 'provider') providers.add(key, externalId);
  for (const { key, practitionerKey } of current(roles, dated, window)) {
    for (const externalId of people.all(practitionerKey)) providers.add(key, externalId);
  }

  const found = new Map<string, { known: (LinkReference & { externalId: string })[]; unresolved: number }>();
  for (const link of current(links, dated, window)) {
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
      const providers = [...new Set(known.sort(inOrder).map(({ externalId }) => externalId))];
      return [client, { providers, replaces: known.some(({ rank }) => rank === 1), unresolved }];
    }),
  );
}

/**
 * A client's list after an upsert: only a generalPractitioner takes the place of who was there; care teams and
 * encounters add to them.
 */
export function upsertedProviders(before: readonly string[], found: ResolvedProviders | undefined): string[] {
  if (!found || found.providers.length === 0) return [...before];
  return found.replaces ? found.providers : [...new Set([...before, ...found.providers])];
}
