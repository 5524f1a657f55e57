import type { Macs } from '../vault/macs.js';
import { type ChainFault, ChainVerifier, headOf, isEntryOf, isOldEnough, isSignedCut } from './chain.js';
import { cutsOf, entriesOf, linksAfter, type Sql, strayEntries, unlinkedIds } from './chain.repository.js';

const LINKS_PER_QUERY = 50;
const ENTRIES_PER_QUERY = 2_000;

/** Maximum number of faults that are named. */
export const MAX_FAULTS = 1_000;

/** The outcome of a verification. */
export interface Verification {
  links: number;
  entries: number;
  /** Entries that no link names yet. */
  unlinked: number;
  /** The newest link, as `number:MAC`. */
  head: string;
  /** Of the given heads: how many are on the chain, and how many are too old to be checked, because the retention removed them. */
  heads: { found: number; cut: number };
  faults: ChainFault[];
}

/**
 * Verifies the whole audit log, and names what was changed, removed or inserted.
 *
 * @param sql one connection in a transaction with one view of the database (REPEATABLE READ)
 * @param heads that were kept elsewhere; one that is not on the chain was removed with all later links
 */
export async function verifyLog(sql: Sql, macs: Macs, heads: readonly string[] = []): Promise<Verification> {
  const faults: ChainFault[] = [];
  let anchor: { no: string; macs: Buffer[] } | undefined;
  for (const cut of await cutsOf(sql)) {
    if (!isSignedCut(macs, cut)) faults.push({ cut: cut.upTo, fault: 'unsigned' });
    else if (!isOldEnough(cut)) faults.push({ cut: cut.upTo, fault: 'too-young' });
    else anchor = { no: cut.upTo, macs: cut.macs };
  }
  const verifier = new ChainVerifier(macs, anchor);
  const result = { links: 0, entries: 0, unlinked: 0 };
  const left = new Set(heads);
  const find = (no: string, all: readonly Buffer[]) => {
    for (const mac of all) left.delete(headOf(no, mac));
  };
  if (anchor) find(anchor.no, anchor.macs);
  for (let no: string | null = null; verifier.faults.length < MAX_FAULTS; ) {
    const links = await linksAfter(sql, no, LINKS_PER_QUERY);
    for (const link of links) {
      verifier.next(link, await entriesOf(sql, link.entries));
      find(link.no, [link.mac, ...link.former]);
      result.links += 1;
      result.entries += link.entries.length;
      no = link.no;
    }
    if (links.length < LINKS_PER_QUERY) break;
  }
  for (let id = '0'; ; ) {
    const ids = await unlinkedIds(sql, ENTRIES_PER_QUERY, id);
    const found = new Map((await entriesOf(sql, ids)).map((entry) => [entry.id, entry]));
    for (const entry of ids) {
      const stored = found.get(entry);
      if (!stored) faults.push({ entry, fault: 'removed' });
      else if (!isEntryOf(macs, stored, stored.mac)) faults.push({ entry, fault: 'unsigned' });
    }
    result.unlinked += ids.length;
    id = ids.at(-1) ?? id;
    if (ids.length < ENTRIES_PER_QUERY) break;
  }
  faults.push(...verifier.faults, ...(await strayEntries(sql, MAX_FAULTS)));
  const isCut = (head: string) => anchor !== undefined && BigInt(head.split(':')[0] ?? '') < BigInt(anchor.no);
  const cut = [...left].filter(isCut);
  for (const head of left) if (!isCut(head)) faults.push({ head, fault: 'removed' });
  return {
    ...{ ...result, head: verifier.head, faults: faults.slice(0, MAX_FAULTS) },
    heads: { found: new Set(heads).size - left.size, cut: cut.length },
  };
}
