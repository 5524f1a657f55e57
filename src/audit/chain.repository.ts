import type { Pool } from 'pg';
import type { Cut, Link, StoredEntry } from './chain.js';

/** A transaction, a connection, or a pool. */
export type Sql = Pick<Pool, 'query'>;

/** SQL of a time as JavaScript writes it. */
const iso = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const LINK = `no::text AS no, ${iso('at')} AS at, entries::text[] AS entries, macs, previous, former, mac`;

const CUT = `up_to::text AS "upTo", ${iso('at')} AS at, ${iso('linked_at')} AS "linkedAt", entries, macs, mac`;

/** The ids of the oldest entries that are not linked, in order. */
export async function unlinkedIds(sql: Sql, limit: number, afterId = '0'): Promise<string[]> {
  const { rows } = await sql.query<{ id: string }>(
    'SELECT entry::text AS id FROM audit_unlinked u WHERE u.entry > $2::bigint ORDER BY u.entry LIMIT $1',
    [limit, afterId],
  );
  return rows.map(({ id }) => id);
}

/** The ids without an entry. */
export async function missingIds(sql: Sql, ids: readonly string[]): Promise<string[]> {
  const { rows } = await sql.query<{ id: string }>(
    `SELECT id::text FROM unnest($1::bigint[]) AS given (id)
     WHERE NOT EXISTS (SELECT FROM audit_entries e WHERE e.id = given.id)`,
    [ids],
  );
  return rows.map(({ id }) => id);
}

/** Entries with everything that their MACs cover; removed entries are left out. */
export async function entriesOf(sql: Sql, ids: readonly string[]): Promise<StoredEntry[]> {
  const { rows } = await sql.query<StoredEntry>(
    `SELECT e.id::text AS id, replace(e.uid::text, '-', '') AS uid, ${iso('e.at')} AS at, e.key_id AS "keyId",
       e.key_name AS "keyName", e.issuer, e.on_behalf_of AS "onBehalfOf", e.purpose, e.action, e.outcome,
       e.request_id AS "requestId", e.source, e.filter, e.mac,
       coalesce((SELECT jsonb_agg(jsonb_build_array(kind, subject)) FROM audit_subjects WHERE entry = e.id), '[]')
         AS subjects,
       coalesce((SELECT jsonb_agg(jsonb_build_array(kind, count, first, last)) FROM audit_ranges WHERE entry = e.id),
         '[]') AS ranges
     FROM audit_entries e WHERE e.id = ANY ($1::bigint[])`,
    [ids],
  );
  return rows;
}

/** The newest link; undefined before the first. */
export async function lastLink(sql: Sql): Promise<Pick<Link, 'no' | 'mac'> | undefined> {
  const text = 'SELECT no::text AS no, mac FROM audit_links ORDER BY audit_links.no DESC LIMIT 1';
  return (await sql.query<Pick<Link, 'no' | 'mac'>>(text)).rows[0];
}

/** True if a link is on the chain, by its present MAC or an earlier key's. */
export async function isLinked(sql: Sql, { no, mac }: Pick<Link, 'no' | 'mac'>): Promise<boolean> {
  const text = 'SELECT FROM audit_links WHERE no = $1 AND (mac = $2 OR $2 = ANY (former))';
  return (await sql.query(text, [no, mac])).rowCount === 1;
}

/**
 * Stores a link, and removes its entries from the queue, unless another worker stored one of this number first. It takes
 * no lock, because another connection could hold it, and remove entries that are not linked yet.
 */
export async function storeLink(sql: Sql, { no, at, entries, macs, previous, mac }: Link): Promise<boolean> {
  const { rows } = await sql.query(
    `WITH link AS (
       INSERT INTO audit_links (no, at, entries, macs, previous, mac) VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (no) DO NOTHING RETURNING no),
     linked AS (DELETE FROM audit_unlinked WHERE entry = ANY ($3::bigint[]) AND EXISTS (SELECT FROM link))
     SELECT FROM link`,
    [no, at, entries, macs, previous, mac],
  );
  return rows.length === 1;
}

/** The links after a number, in order. @param no null for all */
export async function linksAfter(sql: Sql, no: string | null, limit: number): Promise<Link[]> {
  const { rows } = await sql.query<Link>(
    `SELECT ${LINK} FROM audit_links WHERE audit_links.no > coalesce($1::bigint, -9223372036854775808)
     ORDER BY audit_links.no LIMIT $2`,
    [no, limit],
  );
  return rows;
}

/** All cuts, oldest first. */
export async function cutsOf(sql: Sql): Promise<Cut[]> {
  return (await sql.query<Cut>(`SELECT ${CUT} FROM audit_cuts ORDER BY up_to`)).rows;
}

/** Removes the links up to a number, with their entries. @returns the number of entries; null if the links are gone */
export async function cutLinks(tx: Sql, upTo: string, before: Date): Promise<number | null> {
  const text = 'SELECT entries FROM prune_audit($1, $2) AS entries';
  return (await tx.query<{ entries: number | null }>(text, [before, upTo])).rows[0]?.entries ?? null;
}

export async function storeCut(tx: Sql, { upTo, at, linkedAt, entries, macs, mac }: Cut): Promise<void> {
  await tx.query('INSERT INTO audit_cuts (up_to, at, linked_at, entries, macs, mac) VALUES ($1, $2, $3, $4, $5, $6)', [
    upTo,
    at,
    linkedAt,
    entries,
    macs,
    mac,
  ]);
}

/** Stores a link with new MACs. The connection is the owner's, with `notebridge.audit_rotation` on. @param mac the present one */
export async function renewLink(sql: Sql, link: Link, mac: Buffer): Promise<void> {
  await sql.query('UPDATE audit_links SET macs = $3, previous = $4, former = $5, mac = $6 WHERE no = $1 AND mac = $2', [
    link.no,
    mac,
    link.macs,
    link.previous,
    link.former,
    link.mac,
  ]);
}

/** Stores a cut with a new MAC, under the same conditions. */
export async function renewCut(sql: Sql, { upTo, mac }: Cut): Promise<void> {
  await sql.query('UPDATE audit_cuts SET mac = $2 WHERE up_to = $1', [upTo, mac]);
}

/** Entries that neither a link nor the queue names, that two links name, or whose random id occurs twice. */
export async function strayEntries(
  sql: Sql,
  limit: number,
): Promise<{ entry: string; fault: 'inserted' | 'repeated' }[]> {
  const { rows } = await sql.query<{ entry: string; fault: 'inserted' | 'repeated' }>(
    `WITH linked AS MATERIALIZED (SELECT unnest(entries) AS entry FROM audit_links)
     (SELECT id::text AS entry, 'inserted' AS fault FROM audit_entries e
      WHERE NOT EXISTS (SELECT FROM linked l WHERE l.entry = e.id)
        AND NOT EXISTS (SELECT FROM audit_unlinked u WHERE u.entry = e.id) LIMIT $1)
     UNION ALL
     (SELECT entry::text, 'repeated' FROM linked GROUP BY entry HAVING count(*) > 1 LIMIT $1)
     UNION ALL
     (SELECT max(id)::text, 'repeated' FROM audit_entries GROUP BY uid HAVING count(*) > 1 LIMIT $1)`,
    [limit],
  );
  return rows;
}
