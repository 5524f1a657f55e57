import { Injectable } from '@nestjs/common';
import { isMoment } from '../../http/request/moment.js';
import { decodeCursor, pageOf } from '../../http/request/page.js';
import { UUID } from '../../http/request/uuid-param.js';
import type { AuditPageResponse, AuditQuery } from './audit.dto.js';
import { Audit } from './audit.js';
import { AuditRepository, type AuditSearch } from './audit.repository.js';
import type { SubjectKind } from './audit-record.js';

/** Entries that an export reads at once. */
const LINES_AT_ONCE = 500;

/** Answers who did and who saw what. */
@Injectable()
export class AuditSearches {
  constructor(
    private readonly audit: Audit,
    private readonly entries: AuditRepository,
  ) {}

  /** One page, the newest first. */
  async page(query: AuditQuery): Promise<AuditPageResponse> {
    const [beforeId] = decodeCursor<[string]>(query.cursor, 'bigint') ?? [];
    const search = searchOf(query);
    const rows = await this.entries.find({ ...search, beforeId, limit: query.limit + 1 });
    if (rows.length > 0) for (const [kind, id] of search.subjects) this.audit.about(kind, id);
    return pageOf(rows, query.limit, ({ id }) => [id]);
  }

  /** All of it, one entry on each line as JSON, the newest first, in bounded memory. */
  async *lines(query: AuditQuery): AsyncGenerator<string> {
    const [cursor] = decodeCursor<[string]>(query.cursor, 'bigint') ?? [];
    const search = searchOf(query);
    let beforeId = cursor;
    for (;;) {
      const rows = await this.entries.find({ ...search, beforeId, limit: LINES_AT_ONCE });
      if (rows.length > 0) yield rows.map((row) => `${JSON.stringify(row)}\n`).join('');
      if (rows.length < LINES_AT_ONCE) return;
      beforeId = rows.at(-1)?.id;
    }
  }
}

function searchOf(query: AuditQuery): Omit<AuditSearch, 'limit' | 'subjects'> & { subjects: [SubjectKind, string][] } {
  const { client, provider, session, subject: anySubject, keyId, action, after, before: until } = query;
  const named: [SubjectKind, string | undefined][] = [
    ['client', client],
    ['session', session !== undefined && UUID.test(session) ? session.toLowerCase() : undefined],
    ['platform-session', session !== undefined && !UUID.test(session) ? session : undefined],
    ['provider', provider],
  ];
  const subjects = named.filter((pair): pair is [SubjectKind, string] => pair[1] !== undefined);
  const since = isMoment(after) ? after : undefined;
  const afterId = since === undefined ? after : undefined;
  return { subjects, anySubject, keyId, action, afterId, since, until };
}
