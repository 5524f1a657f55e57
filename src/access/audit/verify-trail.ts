import type { Pool } from 'pg';
import { ChainVerifier, type Mac, type TrailFault } from './seal-chain.js';
import { entriesOf, entryIdsAfter, sealsAfter } from './seals.repository.js';

/** Seals, and ids of entries, that are read at once. */
const SEALS_AT_ONCE = 50;
const IDS_AT_ONCE = 10_000;

/** More faults than these are not told one by one. */
export const MOST_FAULTS = 1_000;

/** What became of a verification. */
export interface Verification {
  seals: number;
  entries: number;
  /** Those that no seal covers yet. */
  unsealed: number;
  /** The newest seal, `number:mac`: kept elsewhere, it proves later that nothing was cut off before it. */
  head: string;
  /** Whether the trail still holds the head that was given; null: none was. */
  headHolds: boolean | null;
  faults: TrailFault[];
}

/**
 * Holds the whole trail to its seals: what was changed, removed or inserted is named.
 *
 * @param sql one connection in a transaction with one view of the database (REPEATABLE READ)
 * @param head of an earlier verification
 */
export async function verifyTrail(sql: Pick<Pool, 'query'>, mac: Mac, head?: string): Promise<Verification> {
  const anchor = await anchorOf(sql);
  const verifier = new ChainVerifier(mac, anchor);
  const result = { seals: 0, entries: 0, unsealed: 0 };
  let headHolds = head === undefined ? null : verifier.head === head;
  for (let no = '0'; ; ) {
    const seals = await sealsAfter(sql, no, SEALS_AT_ONCE);
    for (const seal of seals) {
      verifier.next(seal, await entriesOf(sql, seal.entries));
      if (verifier.head === head) headHolds = true;
      result.seals += 1;
      result.entries += seal.entries.length;
      no = seal.no;
    }
    if (seals.length < SEALS_AT_ONCE || verifier.faults.length > MOST_FAULTS) break;
  }
  for (let id = '0'; ; ) {
    const ids = await entryIdsAfter(sql, id, IDS_AT_ONCE);
    for (const { id: entry, isUnsealed } of ids) {
      if (isUnsealed) result.unsealed += 1;
      else if (!verifier.covers(entry)) verifier.faults.push({ entry, fault: 'inserted' });
    }
    if (ids.length < IDS_AT_ONCE || verifier.faults.length > MOST_FAULTS) break;
    id = ids.at(-1)?.id ?? id;
  }
  return { ...result, head: verifier.head, headHolds, faults: verifier.faults.slice(0, MOST_FAULTS) };
}

/** Where retention has cut the trail, as its own entry tells, which a seal that is kept covers. */
async function anchorOf(sql: Pick<Pool, 'query'>): Promise<{ no: string; mac: Buffer } | undefined> {
  const { rows } = await sql.query<{ outcome: string }>(
    `SELECT outcome FROM audit_entries WHERE action = 'retention.audit' ORDER BY id DESC LIMIT 1`,
  );
  const [, no, mac] = /^\d+ removed up to seal (\d+):([0-9a-f]{64})$/.exec(rows[0]?.outcome ?? '') ?? [];
  return no !== undefined && mac !== undefined ? { no, mac: Buffer.from(mac, 'hex') } : undefined;
}
