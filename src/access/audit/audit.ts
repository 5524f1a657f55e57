import { Injectable, Logger } from '@nestjs/common';
import type pg from 'pg';
import { errorTrace } from '../../http/problem/error-trace.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { type AuditFilter, type AuditRecord, AuditRepository, type AuditRow } from './audit.repository.js';

/** The service itself, for what it does without being told. */
export const SYSTEM = { id: 'system', name: 'system' };

/** The trail of who did what; nothing in it is ever changed or removed. */
@Injectable()
export class Audit {
  private readonly log = new Logger(Audit.name);

  constructor(private readonly repository: AuditRepository) {}

  /** Adds an entry. @param tx makes the entry stand or fall with what it tells of */
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
    return pageOf(
      rows,
      limit,
      (row) => [row.id],
      (row) => row,
    );
  }
}
