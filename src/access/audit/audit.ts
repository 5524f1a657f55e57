import { Injectable, Logger } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type pg from 'pg';
import { errorTrace } from '../../http/problem/error-trace.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { type AuditFilter, type AuditRecord, AuditRepository, type AuditRow } from './audit.repository.js';

/** The service itself, for what it does by itself. */
export const SYSTEM = { id: 'system', name: 'system' };

/** The trail of who did what; nothing in it is ever changed or removed. */
@Injectable()
export class Audit {
  private readonly log = new Logger(Audit.name);

  constructor(private readonly repository: AuditRepository) {}

  /** Adds an entry. @param tx makes the entry stand or fall with what it records */
  async record(entry: AuditRecord, tx?: pg.PoolClient): Promise<void> {
    await this.repository.append(entry, tx);
  }

  /** Adds an entry about something that can't be undone any more; when the database is away, the log gets it. */
  async tryRecord(entry: AuditRecord): Promise<void> {
    try {
      await this.repository.append(entry);
    } catch (error) {
      const { by, action, subjects, outcome } = entry;
      const lost = { by: by.id, action, subjects, outcome };
      this.log.error({ msg: 'an audit entry could not be stored', entry: lost, ...errorTrace(error) });
    }
  }

  /** The trail, the newest entry first. */
  async list(filter: AuditFilter, limit: number, cursor: string | undefined): Promise<Page<AuditRow>> {
    const [before] = decodeCursor<[string]>(cursor, 'bigint') ?? [];
    const rows = await this.repository.list(filter, limit + 1, before);
    return pageOf(rows, limit, (row) => [row.id]);
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

/**
 * The ids that a request was about: its path parameters, and the id of what it made.
 *
 * @param params of the route
 * @param result that the handler answered with
 */
export function subjectsOf(params: unknown, result: unknown): Record<string, string> {
  const named = Object.entries({
    ...(result instanceof Object && 'id' in result && { id: result.id }),
    ...asObject(params),
  });
  const ids = named.filter((pair): pair is [string, string] => typeof pair[1] === 'string' && pair[1] !== '');
  return Object.fromEntries(ids.slice(0, MOST_SUBJECTS).map(([name, id]) => [name, keepable(id)]));
}

/** An id without what the database can't keep: NULs, and the half of a character at a cut. */
function keepable(id: string): string {
  return id.slice(0, LONGEST_ID).replace(/[\0\p{Cs}]/gu, '');
}

function asObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}
