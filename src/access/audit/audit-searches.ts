import { Injectable } from '@nestjs/common';
import { isMoment } from '../../http/request/moment.js';
import { decodeCursor, pageOf } from '../../http/request/page.js';
import { UUID } from '../../http/request/uuid-param.js';
import type { AuditPageResponse, AuditQuery } from './audit.dto.js';
import { Audit } from './audit.js';
import { AuditRepository, type AuditSearch, type NamedKinds } from './audit.repository.js';
import { SUBJECT_KINDS } from './audit-record.js';

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
    for (const [kinds, id] of rows.length > 0 ? search.subjects : []) {
      if (kinds !== SUBJECT_KINDS) this.audit.about(kinds[0], id);
    }
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

function searchOf(query: AuditQuery): Omit<AuditSearch, 'limit'> {
  const { id, client, provider, session, subject, keyId, action, after, before: until } = query;
  const isUuid = session !== undefined && UUID.test(session);
  const named: [NamedKinds, string | undefined][] = [
    [['client'], client],
    // The platform's ids may be UUIDs as ours are.
    [isUuid ? ['session', 'platform-session'] : ['platform-session'], isUuid ? session.toLowerCase() : session],
    [['provider'], provider],
    [SUBJECT_KINDS, subject],
  ];
  const subjects = named.filter((pair): pair is [NamedKinds, string] => pair[1] !== undefined);
  const since = isMoment(after) ? after : undefined;
  const afterId = since === undefined ? after : undefined;
  return { id, subjects, keyId, action, afterId, since, until };
}
