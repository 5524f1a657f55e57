import type { Client } from 'pg';
import { INSIGHT_COLUMNS, INSIGHT_PARTS } from '../sessions/model/session-seal.js';
import type { Fingerprints } from '../vault/fingerprints.js';
import type { ColumnKeys } from '../vault/rotation.js';

type Sql = Pick<Client, 'query'>;

/** A fingerprint: where its plaintext is, and why a row may keep it without. */
interface FingerprintColumn {
  /** SQL of the column with the encrypted plaintext; `NULL` if none is stored. */
  source: string;
  reason: string;
}

/** A table with fingerprints. */
export interface FingerprintTable {
  /** Columns of the primary key and their types. */
  key: Record<string, string>;
  join?: string;
  columns: Record<string, FingerprintColumn>;
  /** SQL of the other data that recomputing needs. Without it, no fingerprint of the table can be recomputed. */
  read?: string;
}

const PROFILE = { source: 't.profile', reason: '' };
const INSIGHTS = INSIGHT_PARTS.map((part) => `t.${INSIGHT_COLUMNS[part]}`);

/** Every fingerprint that is compared. A fingerprint of a path in the audit log is not. */
export const FINGERPRINT_TABLES: Record<string, FingerprintTable> = {
  import_rows: {
    key: { import_id: 'uuid', row_no: 'int' },
    columns: { profile_hash: PROFILE, email_fingerprint: { source: 'coalesce(t.profile, t.cells)', reason: '' } },
    read: 't.import_id, t.row_no, t.profile, t.cells',
  },
  people: {
    key: { id: 'uuid' },
    columns: {
      profile_hash: PROFILE,
      email_fingerprint: PROFILE,
      attempt_email: { source: 't.attempt_profile', reason: '' },
    },
    read: 't.id, t.profile, t.applied_profile, t.attempt_profile',
  },
  email_claims: {
    key: { fingerprint: 'bytea' },
    columns: { fingerprint: { source: 'NULL', reason: 'earlier emails of people, until these are deleted' } },
  },
  session_documents: {
    key: { id: 'uuid' },
    join: 'LEFT JOIN document_revisions d ON d.document = t.id AND d.revision = t.revision',
    columns: { fingerprint: { source: 'd.notes', reason: 'notes that were removed, so that they do not return' } },
    read: 't.id, t.session, t.revision, d.notes',
  },
  session_insights: {
    key: { session: 'uuid' },
    columns: {
      fingerprint: {
        source: `coalesce(${INSIGHTS})`,
        reason: 'transcripts and insights that were removed, so that they do not return',
      },
    },
    read: `t.session, ${INSIGHTS}`,
  },
  handed_out_urls: {
    key: { fingerprint: 'bytea' },
    columns: { fingerprint: { source: 'NULL', reason: 'addresses of files, for RECORDINGS_RETENTION_DAYS' } },
  },
  idempotency_records: {
    key: { id: 'uuid' },
    columns: Object.fromEntries(
      ['scope_hash', 'request_hash'].map((column) => [column, { source: 'NULL', reason: 'requests, for 24 hours' }]),
    ),
  },
};

/** Counts the fingerprints by their key: one read of each table. */
export async function countFingerprints(sql: Sql, fingerprints: Fingerprints): Promise<ColumnKeys[]> {
  const counted: ColumnKeys[] = [];
  for (const [table, { columns, join = '' }] of Object.entries(FINGERPRINT_TABLES)) {
    const values = Object.entries(columns).map(
      ([column, { source }]) =>
        `('${column}', substring(t.${column} FOR 1 + get_byte(nullif(t.${column}, ''), 0)), ${source} IS NOT NULL)`,
    );
    const { rows } = await sql.query<{ column: string; header: Buffer; isStored: boolean; count: number }>(
      `SELECT v.column, v.header, v.stored AS "isStored", count(*)::int AS count FROM ${table} t ${join}
       CROSS JOIN LATERAL (VALUES ${values.join(', ')}) AS v("column", header, stored)
       WHERE v.header IS NOT NULL GROUP BY 1, 2, 3`,
    );
    for (const [column, { reason }] of Object.entries(columns)) {
      const ofColumn: ColumnKeys = { table, column, keys: {}, stale: 0 };
      let kept = 0;
      for (const { header, isStored, count } of rows.filter((row) => row.column === column)) {
        const key = header.toString('utf8', 1);
        ofColumn.keys[key] = (ofColumn.keys[key] ?? 0) + count;
        if (header.equals(fingerprints.header)) continue;
        if (isStored) ofColumn.stale += count;
        else kept += count;
      }
      counted.push(kept > 0 ? { ...ofColumn, kept, reason } : ofColumn);
    }
  }
  return counted;
}
