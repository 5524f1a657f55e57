import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Database } from '../../database/database.js';
import { familyOf } from '../../database/former-ids.js';
import { isMoment } from '../../http/request/moment.js';
import { UUID } from '../../http/request/uuid-param.js';
import type { AuditQuery, AuditResponse } from './audit.dto.js';
import { type AuditRecord, SUBJECT_KINDS, type SubjectKind } from './audit-record.js';

/** Appends entries with their subjects, and queues each for its seal. */
const APPEND = `
  WITH given AS MATERIALIZED (
    SELECT nextval('audit_entries_id_seq') AS id, g.* FROM jsonb_to_recordset($1::jsonb) AS g (
      key_id text, key_name text, on_behalf_of text, purpose text, action text, outcome text, request_id text,
      source text, counts jsonb, subjects jsonb)),
  entries AS (
    INSERT INTO audit_entries
      (id, key_id, key_name, on_behalf_of, purpose, action, outcome, request_id, source, counts)
    SELECT id, key_id, key_name, on_behalf_of, purpose, action, outcome, request_id, source, counts FROM given),
  unsealed AS (INSERT INTO audit_unsealed (entry) SELECT id FROM given)
  INSERT INTO audit_subjects (entry, kind, subject)
  SELECT given.id, pair ->> 0, pair ->> 1 FROM given, jsonb_array_elements(given.subjects) AS pair`;

/** The columns of an entry `e`, with its subjects, as the API shows them. */
const SHOWN = `e.id::text AS id, e.at, e.key_id AS "keyId", e.key_name AS "keyName", e.on_behalf_of AS "onBehalfOf",
  e.purpose, e.action, e.outcome, e.request_id AS "requestId", e.source, e.counts,
  coalesce((SELECT jsonb_object_agg(of_kind.kind, of_kind.ids) FROM (
    SELECT kind, jsonb_agg(subject ORDER BY subject) AS ids FROM audit_subjects WHERE entry = e.id GROUP BY kind
  ) AS of_kind), '{}') AS subjects`;

/**
 * Makes the planner read a page of a subject's entries in index order. Otherwise, if it expects few, it collects and sorts
 * all of them, which takes seconds for a subject with 100,000 entries among ten million.
 */
const IN_ORDER_OF_INDEX = 'SET LOCAL enable_bitmapscan = off';

/**
 * How much older an entry may be than one with a lower id, because a clock was set back or another server took over. A
 * search by time also reads the entries of this interval before its start and after its end.
 */
const SLACK = `interval '1 day'`;

/** An id that a query names, and the kinds of subjects that it may be an id of. */
type NamedSubject = [kinds: readonly [SubjectKind, ...SubjectKind[]], id: string];

/** The same with all current and former ids of a person. */
type KnownSubject = [kinds: NamedSubject[0], ids: string[]];

/** The subjects that a query names. */
export function namedSubjects({ client, provider, session, subject }: AuditFilter): NamedSubject[] {
  const isUuid = session !== undefined && UUID.test(session);
  const named: [NamedSubject[0], string | undefined][] = [
    [['client'], client],
    // The platform's ids may be UUIDs, as ours are.
    [isUuid ? ['session', 'platform-session'] : ['platform-session'], isUuid ? session.toLowerCase() : session],
    [['provider'], provider],
    [SUBJECT_KINDS, subject],
  ];
  return named.filter((pair): pair is NamedSubject => pair[1] !== undefined);
}

/** What a search asks for; every given field must match. */
type AuditFilter = Omit<AuditQuery, 'limit' | 'cursor'>;

/** The rows of the audit trail. */
@Injectable()
export class AuditRepository {
  constructor(private readonly database: Database) {}

  /** Adds entries, all or none. @param sql a transaction, or the pool */
  async append(sql: Pick<pg.Pool, 'query'>, records: readonly AuditRecord[]): Promise<void> {
    const rows = records.map(({ by, subjects, ...record }) => {
      const { pairs, counts } = subjects.kept();
      const { onBehalfOf, purpose, action, outcome, requestId, source } = record;
      return {
        ...{ key_id: by.id, key_name: by.name, on_behalf_of: onBehalfOf, purpose, action, outcome },
        ...{ request_id: requestId, source, counts, subjects: pairs },
      };
    });
    await sql.query({ name: 'audit-append', text: APPEND, values: [JSON.stringify(rows)] });
  }

  /** The entries that match a filter, newest first. @param beforeId id of an entry, exclusive */
  async find(filter: AuditFilter, limit: number, beforeId?: string): Promise<AuditResponse[]> {
    return this.database.transaction(async (tx) => {
      await tx.query(IN_ORDER_OF_INDEX);
      const named: KnownSubject[] = [];
      for (const subject of namedSubjects(filter)) named.push(await allIdsOf(tx, subject));
      return (await tx.query<AuditResponse>(searchStatement(filter, named, limit, beforeId))).rows;
    });
  }
}

/** Adds the other ids of a person, which older entries name. */
async function allIdsOf(tx: pg.PoolClient, [kinds, id]: NamedSubject): Promise<KnownSubject> {
  const ids = new Set([id]);
  for (const kind of ['client', 'provider'] as const)
    if (kinds.includes(kind)) for (const each of (await familyOf(tx, kind, id)).externalIds) ids.add(each);
  return [kinds, [...ids]];
}

/**
 * A named subject leads to its entries in index order, for any statistics: OFFSET 0 prevents another join. Without a named
 * subject the entries are read in the order of their ids, and those of a key or an action by its own index.
 */
function searchStatement(
  filter: AuditFilter,
  subjects: KnownSubject[],
  limit: number,
  beforeId?: string,
): pg.QueryConfig<unknown[]> {
  const { id, keyId, action, after, before } = filter;
  const values: unknown[] = [];
  const value = (given: unknown) => `$${values.push(given)}`;
  const conditions: string[] = [];
  const when = (given: string | undefined, condition: (place: string) => string) => {
    if (given !== undefined) conditions.push(condition(value(given)));
  };
  when(id, (entry) => `e.id = ${entry}::bigint`);
  when(keyId, (key) => `e.key_id = ${key}`);
  when(action, (name) => `e.action = ${name}`);
  when(beforeId, (id) => `e.id < ${id}::bigint`);
  when(isMoment(after) ? undefined : after, (id) => `e.id > ${id}::bigint`);
  when(
    isMoment(after) ? after : undefined,
    (at) => `e.at >= ${at}::timestamptz AND e.id > coalesce((SELECT id FROM audit_entries
    WHERE at < ${at}::timestamptz - ${SLACK} ORDER BY at DESC LIMIT 1), 0)`,
  );
  when(
    before,
    (at) => `e.at < ${at}::timestamptz AND e.id < coalesce((SELECT id FROM audit_entries
    WHERE at >= ${at}::timestamptz + ${SLACK} ORDER BY at LIMIT 1), 9223372036854775807)`,
  );
  const named = subjects.map(([[kind, ...others], ids]) => {
    const isKind =
      others.length === 0 ? `s.kind = ${value(kind)}` : `s.kind = ANY (${value([kind, ...others])}::text[])`;
    // One id keeps the order of the index.
    return ids.length === 1
      ? `${isKind} AND s.subject = ${value(ids[0])}`
      : `${isKind} AND s.subject = ANY (${value(ids)}::text[])`;
  });
  const [first, ...others] = named;
  for (const other of others)
    conditions.push(`EXISTS (SELECT FROM audit_subjects s WHERE s.entry = e.id AND ${other})`);
  const where = conditions.length === 0 ? 'true' : conditions.join(' AND ');
  const most = value(limit);
  if (!first) {
    return { text: `SELECT ${SHOWN} FROM audit_entries e WHERE ${where} ORDER BY e.id DESC LIMIT ${most}`, values };
  }
  const page = beforeId === undefined ? '' : `AND s.entry < ${value(beforeId)}::bigint`;
  const text = `SELECT ${SHOWN}
    FROM (SELECT s.entry FROM audit_subjects s WHERE ${first} ${page} ORDER BY s.entry DESC) AS named
    CROSS JOIN LATERAL (SELECT * FROM audit_entries e WHERE e.id = named.entry AND ${where} OFFSET 0) AS e
    ORDER BY named.entry DESC LIMIT ${most}`;
  return { text, values };
}
