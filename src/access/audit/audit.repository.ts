import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Database } from '../../database/database.js';

/** One thing that was done. Ids only: never a name, an address or a text. */
export interface AuditRecord {
  by: { id: string; name: string };
  /** A route pattern with its method, or a word such as `import.override`. */
  action: string;
  /** Ids by what they are ids of. */
  subjects: Record<string, string>;
  /** An HTTP status or a word. */
  outcome: string;
}

/** An entry as it is kept; ids are decimal texts, for they outgrow a double. */
export interface AuditRow {
  id: string;
  at: Date;
  keyId: string;
  keyName: string;
  action: string;
  subjects: Record<string, string>;
  outcome: string;
}

/** Which entries to show; all that is given must hold. */
export interface AuditFilter {
  keyId?: string;
  action?: string;
  /** An id that stands among the subjects. */
  subject?: string;
}

@Injectable()
export class AuditRepository {
  constructor(private readonly database: Database) {}

  async append(entry: AuditRecord, tx?: pg.PoolClient): Promise<void> {
    await (tx ?? this.database.pool).query({
      name: 'audit-append',
      text: `INSERT INTO audit_entries (key_id, key_name, action, subjects, outcome) VALUES ($1, $2, $3, $4, $5)`,
      values: [entry.by.id, entry.by.name, entry.action, JSON.stringify(entry.subjects), entry.outcome],
    });
  }

  /** @param before id of the last entry of the page before */
  async list(filter: AuditFilter, limit: number, before: string | undefined): Promise<AuditRow[]> {
    const { rows } = await this.database.pool.query<AuditRow>(
      `SELECT id::text, at, key_id AS "keyId", key_name AS "keyName", action, subjects, outcome
       FROM audit_entries
       WHERE ($2::bigint IS NULL OR id < $2)
         AND ($3::text IS NULL OR key_id = $3)
         AND ($4::text IS NULL OR action = $4)
         AND ($5::text IS NULL OR EXISTS (SELECT FROM jsonb_each_text(subjects) AS named WHERE named.value = $5))
       ORDER BY audit_entries.id DESC LIMIT $1`,
      [limit, before ?? null, filter.keyId ?? null, filter.action ?? null, filter.subject ?? null],
    );
    return rows;
  }
}
