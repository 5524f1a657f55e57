import type { Pool } from 'pg';
import type { Seal, SealedEntry } from './seal-chain.js';

/** A transaction, or whatever else takes statements one after the other. */
type Sql = Pick<Pool, 'query'>;

/** Any fixed number: the process that seals holds this lock. */
const SEALING_LOCK = 727_008;

const UTC = `AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;

/** Takes the lock of the one process that seals, until the transaction ends. @returns false when another has it */
export async function tryLockSealing(tx: Sql): Promise<boolean> {
  const { rows } = await tx.query<{ locked: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS locked', [
    SEALING_LOCK,
  ]);
  return rows[0]?.locked ?? false;
}

/** The oldest entries that wait for a seal. @returns their ids, in order */
export async function unsealedIds(sql: Sql, limit: number): Promise<string[]> {
  const { rows } = await sql.query<{ id: string }>(
    'SELECT entry::text AS id FROM audit_unsealed ORDER BY audit_unsealed.entry LIMIT $1',
    [limit],
  );
  return rows.map(({ id }) => id);
}

/** Entries with all that a seal covers; those that are gone are left out. */
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

/** Number and mac of the newest seal. */
export async function lastSeal(sql: Sql): Promise<Pick<Seal, 'no' | 'mac'> | undefined> {
  const { rows } = await sql.query<Pick<Seal, 'no' | 'mac'>>(
    'SELECT no::text AS no, mac FROM audit_seals ORDER BY audit_seals.no DESC LIMIT 1',
  );
  return rows[0];
}

/** The moment of the database, as seals hold it. */
export async function sealingMoment(tx: Sql): Promise<string> {
  const { rows } = await tx.query<{ at: string }>(`SELECT to_char(clock_timestamp() ${UTC}) AS at`);
  return rows[0]?.at ?? '';
}

/** Stores a seal; its entries wait no more. */
export async function storeSeal(tx: Sql, { no, at, entries, macs, mac }: Seal): Promise<void> {
  await tx.query(
    `WITH sealed AS (DELETE FROM audit_unsealed WHERE entry = ANY ($3::bigint[]))
     INSERT INTO audit_seals (no, at, entries, macs, mac) VALUES ($1, $2, $3, $4, $5)`,
    [no, at, entries, macs, mac],
  );
}

/** The seals behind a number, in order. */
export async function sealsAfter(sql: Sql, no: string, limit: number): Promise<Seal[]> {
  const { rows } = await sql.query<Seal>(
    `SELECT no::text AS no, to_char(at ${UTC}) AS at, entries::text[] AS entries, macs, mac
     FROM audit_seals WHERE audit_seals.no > $1::bigint ORDER BY audit_seals.no LIMIT $2`,
    [no, limit],
  );
  return rows;
}

/** Ids of entries behind one, in order, with whether each still waits for its seal. */
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
