import type { Pool } from 'pg';
import { BEFORE_THE_FIRST, type Seal, type SealedEntry } from './seal-chain.js';

/** A transaction, or a pool. */
type Sql = Pick<Pool, 'query'>;

/** Any fixed number. The process that seals holds this advisory lock. */
const SEALING_LOCK = 727_008;

const UTC = `AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;

/** Takes the lock for sealing until the transaction ends. @returns false if another process holds it */
export async function tryLockSealing(tx: Sql): Promise<boolean> {
  const { rows } = await tx.query<{ locked: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS locked', [
    SEALING_LOCK,
  ]);
  return rows[0]?.locked ?? false;
}

/** SQL for the poller: due while an entry has no seal. */
export const UNSEALED = '(SELECT now() FROM audit_unsealed ORDER BY entry LIMIT 1)';

/** The ids of the oldest entries without a seal, in order. */
export async function unsealedIds(sql: Sql, limit: number): Promise<string[]> {
  const { rows } = await sql.query<{ id: string }>(
    'SELECT entry::text AS id FROM audit_unsealed ORDER BY audit_unsealed.entry LIMIT $1',
    [limit],
  );
  return rows.map(({ id }) => id);
}

/** Entries with everything that a seal covers; removed entries are left out. */
export async function entriesOf(sql: Sql, ids: readonly string[]): Promise<SealedEntry[]> {
  const { rows } = await sql.query<SealedEntry>(
    `SELECT e.id::text AS id, to_char(e.at ${UTC}) AS at, e.key_id AS "keyId", e.key_name AS "keyName",
       e.on_behalf_of AS "onBehalfOf", e.purpose, e.action, e.outcome, e.request_id AS "requestId", e.source, e.counts,
       coalesce((SELECT jsonb_agg(jsonb_build_array(s.kind, s.subject)) FROM audit_subjects s WHERE s.entry = e.id), '[]')
         AS subjects
     FROM audit_entries e WHERE e.id = ANY ($1::bigint[])`,
    [ids],
  );
  return rows;
}

/** The number and time of the next seal, by the database's clock, and the mac of the seal before it. */
export async function nextSeal(tx: Sql): Promise<Pick<Seal, 'no' | 'at'> & { previous: Buffer }> {
  const { rows } = await tx.query(
    `SELECT (coalesce(max(no), 0) + 1)::text AS no, to_char(clock_timestamp() ${UTC}) AS at,
       coalesce((SELECT mac FROM audit_seals ORDER BY no DESC LIMIT 1), $1) AS previous FROM audit_seals`,
    [BEFORE_THE_FIRST],
  );
  return rows[0];
}

/** Stores a seal, and removes its entries from the queue of unsealed ones. */
export async function storeSeal(tx: Sql, { no, at, entries, macs, mac }: Seal): Promise<void> {
  await tx.query(
    `WITH sealed AS (DELETE FROM audit_unsealed WHERE entry = ANY ($3::bigint[]))
     INSERT INTO audit_seals (no, at, entries, macs, mac) VALUES ($1, $2, $3, $4, $5)`,
    [no, at, entries, macs, mac],
  );
}

/** The seals after a number, in order. */
export async function sealsAfter(sql: Sql, no: string, limit: number): Promise<Seal[]> {
  const { rows } = await sql.query<Seal>(
    `SELECT no::text AS no, to_char(at ${UTC}) AS at, entries::text[] AS entries, macs, mac
     FROM audit_seals WHERE audit_seals.no > $1::bigint ORDER BY audit_seals.no LIMIT $2`,
    [no, limit],
  );
  return rows;
}

/** The ids of the entries after an id, in order. `isUnsealed` is true while an entry waits for its seal. */
export async function entryIdsAfter(
  sql: Sql,
  id: string,
  limit: number,
): Promise<{ id: string; isUnsealed: boolean }[]> {
  const { rows } = await sql.query<{ id: string; isUnsealed: boolean }>(
    `SELECT e.id::text AS id, EXISTS (SELECT FROM audit_unsealed u WHERE u.entry = e.id) AS "isUnsealed"
     FROM audit_entries e WHERE e.id > $1::bigint ORDER BY e.id LIMIT $2`,
    [id, limit],
  );
  return rows;
}
