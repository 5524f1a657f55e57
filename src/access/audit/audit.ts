import { Injectable, Logger } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type pg from 'pg';
import { Database } from '../../database/database.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { decodeCursor, pageOf } from '../../http/request/page.js';
import type { AuditPageResponse, AuditQuery, AuditResponse } from './audit.dto.js';

/** One thing that was done. Ids only: never a name, an address or a text. */
interface AuditEntry {
  by: { id: string; name: string };
  /** A route pattern with its method, or a word such as `import.override`. */
  action: string;
  /** Ids by what they are ids of. */
  subjects: Record<string, string>;
  /** An HTTP status or a word. */
  outcome: string;
}

/** The trail of who did what; nothing in it is ever changed or removed. */
@Injectable()
export class Audit {
  private readonly log = new Logger(Audit.name);

  constructor(private readonly database: Database) {}

  /** Adds an entry. @param tx makes the entry stand or fall with what it records */
  async record({ by, action, subjects, outcome }: AuditEntry, tx?: pg.PoolClient): Promise<void> {
    await (tx ?? this.database.pool).query({
      name: 'audit-append',
      text: 'INSERT INTO audit_entries (key_id, key_name, action, subjects, outcome) VALUES ($1, $2, $3, $4, $5)',
      values: [by.id, by.name, action, JSON.stringify(subjects), outcome],
    });
  }

  /** Adds an entry about something that can't be undone any more; when the database is away, the log gets it. */
  async tryRecord(entry: AuditEntry): Promise<void> {
    try {
      await this.record(entry);
    } catch (error) {
      const lost = { ...entry, by: entry.by.id };
      this.log.error({ msg: 'an audit entry could not be stored', entry: lost, ...errorTrace(error) });
    }
  }

  /** The trail, the newest entry first. */
  async list({ limit, cursor, keyId, action, subject }: AuditQuery): Promise<AuditPageResponse> {
    const [before] = decodeCursor<[string]>(cursor, 'bigint') ?? [];
    const { rows } = await this.database.pool.query<AuditResponse>(
      `SELECT id::text, at, key_id AS "keyId", key_name AS "keyName", action, subjects, outcome
       FROM audit_entries
       WHERE ($2::bigint IS NULL OR id < $2)
         AND ($3::text IS NULL OR key_id = $3)
         AND ($4::text IS NULL OR action = $4)
         AND ($5::text IS NULL OR EXISTS (SELECT FROM jsonb_each_text(subjects) AS named WHERE named.value = $5))
       ORDER BY audit_entries.id DESC LIMIT $1`,
      [limit + 1, before ?? null, keyId ?? null, action ?? null, subject ?? null],
    );
    return pageOf(rows, limit, ({ id }) => [id]);
  }
}

/** Characters of an id that the trail keeps. */
const LONGEST_ID = 200;

/** Subjects of one entry at most. */
const MOST_SUBJECTS = 10;

/** A request as the trail names it: its method and its route pattern. */
export function routeOf(request: Pick<FastifyRequest, 'method' | 'routeOptions'>): string {
  return `${request.method} ${request.routeOptions.url ?? 'unmatched'}`;
}

/** The ids that a request was about: its path parameters, and the id of what its handler answered with. */
export function subjectsOf(params: unknown, result: unknown): Record<string, string> {
  const made = result instanceof Object && 'id' in result ? { id: result.id } : {};
  const named = Object.entries({ ...made, ...(params as object | undefined) });
  const ids = named.filter((pair): pair is [string, string] => typeof pair[1] === 'string' && pair[1] !== '');
  // The database keeps neither a NUL nor the half of a character at a cut.
  const keepable = (id: string) => id.slice(0, LONGEST_ID).replace(/[\0\p{Cs}]/gu, '');
  return Object.fromEntries(ids.slice(0, MOST_SUBJECTS).map(([name, id]) => [name, keepable(id)]));
}
