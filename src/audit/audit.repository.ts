import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Clock } from '../config/clock.js';
import { Random } from '../config/random.js';
import { Database } from '../database/database.js';
import { UUID } from '../http/request/uuid-param.js';
import { isMoment } from '../text/moment.js';
import { Macs } from '../vault/macs.js';
import { inWords } from '../words/audit-words.js';
import type { AuditQuery, AuditResponse } from './audit.dto.js';
import { type AuditRecord, SUBJECT_KINDS, type SubjectKind } from './audit-record.js';
import { type SignedEntry, signEntry } from './chain.js';

/** Appends entries with their subjects and ranges, and queues each for its link in the chain. */
const APPEND = `
  WITH given AS MATERIALIZED (
    SELECT nextval('audit_entries_id_seq') AS id, g.* FROM jsonb_to_recordset($1::jsonb) AS g (
      uid uuid, at timestamptz, "keyId" text, "keyName" text, issuer text, "onBehalfOf" text, purpose text, action text,
      outcome text, "requestId" text, source text, filter jsonb, mac text, subjects jsonb, ranges jsonb)),
  entries AS (
    INSERT INTO audit_entries
      (id, uid, at, key_id, key_name, issuer, on_behalf_of, purpose, action, outcome, request_id, source, filter, mac)
    SELECT id, uid, at, "keyId", "keyName", issuer, "onBehalfOf", purpose, action, outcome, "requestId", source, filter,
      decode(mac, 'hex') FROM given),
  unlinked AS (INSERT INTO audit_unlinked (entry) SELECT id FROM given),
  ranges AS (
    INSERT INTO audit_ranges (entry, kind, count, first, last)
    SELECT given.id, one ->> 0, (one ->> 1)::int, one ->> 2, one ->> 3
    FROM given, jsonb_array_elements(given.ranges) AS one)
  INSERT INTO audit_subjects (entry, kind, subject)
  SELECT given.id, pair ->> 0, pair ->> 1 FROM given, jsonb_array_elements(given.subjects) AS pair`;

/**
 * The columns of an entry `e`, with its subjects, as the API shows them. OFFSET 0 prevents the planner from searching a
 * larger index in the order of kinds.
 */
const SHOWN = `e.id::text AS id, e.at, e.key_id AS "keyId", e.key_name AS "keyName", e.issuer,
  e.on_behalf_of AS "onBehalfOf", e.purpose, e.action, e.outcome, e.request_id AS "requestId", e.source, e.filter,
  coalesce((SELECT jsonb_object_agg(of_kind.kind, of_kind.ids) FROM (
    SELECT kind, jsonb_agg(subject ORDER BY subject) AS ids
    FROM (SELECT kind, subject FROM audit_subjects WHERE entry = e.id OFFSET 0) AS of_entry GROUP BY kind
  ) AS of_kind), '{}') AS subjects,
  coalesce((SELECT jsonb_object_agg(kind, jsonb_build_object('count', count, 'first', first, 'last', last))
    FROM audit_ranges WHERE entry = e.id), '{}') AS ranges`;

/**
 * Makes the planner read a page of a subject's entries in index order. Otherwise, if it expects few, it collects and sorts
 * all of them, which takes seconds for a subject with 100,000 entries among ten million.
 */
export const IN_ORDER_OF_INDEX =
  'SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_hashagg = off';

/**
 * How much older an entry may be than one with a lower id, because the clocks of processes differ. A search by time also
 * reads the entries of this interval before its start and after its end.
 */
const SLACK = `interval '15 minutes'`;

/** An id that a query names, and the kinds of subjects that it may be an id of. */
type NamedSubject = [kinds: readonly [SubjectKind, ...SubjectKind[]], id: string];

/** Ids of a subject, by what they are ids of: of a person all current and former ones. */
type KnownSubject = readonly (readonly [kind: SubjectKind, ids: readonly string[]])[];

/** Finds all ids of the subject with the given id, such as the former ids of a person, which older entries name. */
type FindIds = (tx: pg.PoolClient, id: string) => Promise<readonly string[]>;

/** The subjects that a query names. */
export function namedSubjects({ client, provider, session, subject }: AuditFilter): NamedSubject[] {
  const isUuid = session !== undefined && UUID.test(session);
  const named: [NamedSubject[0], string | undefined][] = [
    [['client'], client],
    // The platform's ids may be UUIDs, as ours are.
    [isUuid ? ['session', 'platform-session'] : ['platform-session'], session],
    [['provider'], provider],
    [SUBJECT_KINDS, subject],
  ];
  return named.filter((pair): pair is NamedSubject => pair[1] !== undefined);
}

/** The conditions of a search; every given field must match. */
type AuditFilter = Omit<AuditQuery, 'limit' | 'cursor'>;

/**
 * SQL of the entries about a subject: those that name one of its ids, and those with a range that may contain one. Each part
 * comes in the order of an index, for any statistics, so that parts are merged without a sort.
 *
 * @param subject placeholders of the ids
 * @param and conditions on `entry`
 */
function entriesAbout(subject: KnownSubject, and: string): string {
  const parts = subject.flatMap(([kind, ids]) => [
    ...ids.map((id) => `FROM audit_subjects WHERE kind = '${kind}' AND subject = ${id}`),
    `FROM audit_ranges WHERE kind = '${kind}' AND (${ids.map((id) => `first <= ${id} AND last >= ${id}`).join(' OR ')})`,
  ]);
  return parts.map((part) => `(SELECT entry ${part} ${and} ORDER BY entry DESC)`).join(' UNION ALL ');
}

/** The rows of the audit log. */
@Injectable()
export class AuditRepository {
  private readonly finders = new Map<SubjectKind, FindIds>();

  constructor(
    private readonly database: Database,
    private readonly macs: Macs,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  /** Declares that subjects of a kind may have several ids. */
  registerIds(kind: SubjectKind, find: FindIds): void {
    this.finders.set(kind, find);
  }

  /** Adds signed entries, all or none. @param sql a transaction, or the pool */
  async append(sql: Pick<pg.Pool, 'query'>, records: readonly AuditRecord[]): Promise<void> {
    const rows = records.map((record) => this.signed(record));
    await sql.query({ name: 'audit-append', text: APPEND, values: [JSON.stringify(rows)] });
  }

  private signed({ by, subjects, filter, ...record }: AuditRecord): SignedEntry & { mac: string } {
    const kept = subjects.kept();
    const entry = {
      ...{ uid: this.random.bytes(16).toString('hex'), at: this.clock.now().toISOString() },
      ...{ keyId: by.id, keyName: by.name, issuer: by.issuer ?? null, onBehalfOf: record.onBehalfOf ?? null },
      ...{ purpose: record.purpose ?? null, action: record.action, outcome: record.outcome },
      ...{ requestId: record.requestId ?? null, source: record.source ?? null },
      ...{ filter: kept.ranges.length > 0 ? (filter ?? null) : null, ...kept },
    };
    return { ...entry, mac: signEntry(this.macs, entry).toString('hex') };
  }

  /** The entries that match a filter, newest first. @param beforeId id of an entry, exclusive */
  async find(filter: AuditFilter, limit: number, beforeId?: string): Promise<AuditResponse[]> {
    return this.database.transaction(async (tx) => {
      const named: KnownSubject[] = [];
      for (const subject of namedSubjects(filter)) named.push(await this.known(tx, subject));
      await tx.query(IN_ORDER_OF_INDEX);
      const { rows } = await tx.query<AuditResponse>(searchStatement(filter, named, limit, beforeId));
      for (const row of rows) row.summary = inWords(row.action, row.outcome);
      return rows;
    });
  }

  private async known(tx: pg.PoolClient, [kinds, id]: NamedSubject): Promise<KnownSubject> {
    const known: [SubjectKind, readonly string[]][] = [];
    for (const kind of kinds) {
      // Our own ids of sessions are stored in lower case, the platform's as it writes them.
      const stored = kind === 'session' ? id.toLowerCase() : id;
      known.push([kind, (await this.finders.get(kind)?.(tx, stored)) ?? [stored]]);
    }
    return known;
  }
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
  /** Comparisons of the id of an entry. */
  const bounds: string[] = [];
  const when = (given: string | undefined, condition: (place: string) => string, list = conditions) => {
    if (given !== undefined) list.push(condition(value(given)));
  };
  const [since, afterId] = isMoment(after) ? [after] : [undefined, after];
  when(keyId, (key) => `e.key_id = ${key}`);
  when(action, (name) => `e.action = ${name}`);
  when(since, (at) => `e.at >= ${at}::timestamptz`);
  when(before, (at) => `e.at < ${at}::timestamptz`);
  when(id, (entry) => `= ${entry}::bigint`, bounds);
  when(beforeId, (entry) => `< ${entry}::bigint`, bounds);
  when(afterId, (entry) => `> ${entry}::bigint`, bounds);
  const olderThan = (at: string) => `SELECT id FROM audit_entries
    WHERE at < ${at}::timestamptz - ${SLACK} ORDER BY at DESC LIMIT 1`;
  const newerThan = (at: string) => `SELECT id FROM audit_entries
    WHERE at >= ${at}::timestamptz + ${SLACK} ORDER BY at LIMIT 1`;
  when(since, (at) => `> coalesce((${olderThan(at)}), 0)`, bounds);
  when(before, (at) => `< coalesce((${newerThan(at)}), 9223372036854775807)`, bounds);
  const [first, ...others] = subjects.map((subject) =>
    subject.map(([kind, ids]) => [kind, ids.map((id) => value(id))] as const),
  );
  for (const subject of others) conditions.push(`EXISTS (${entriesAbout(subject, 'AND entry = e.id')})`);
  const most = value(limit);
  if (!first) {
    const where = ['true', ...conditions, ...bounds.map((bound) => `e.id ${bound}`)].join(' AND ');
    return { text: `SELECT ${SHOWN} FROM audit_entries e WHERE ${where} ORDER BY e.id DESC LIMIT ${most}`, values };
  }
  const page = bounds.map((bound) => `AND entry ${bound}`).join(' ');
  const where = ['e.id = named.entry', ...conditions].join(' AND ');
  const text = `SELECT ${SHOWN}
    FROM (SELECT DISTINCT entry FROM (${entriesAbout(first, page)}) AS every ORDER BY entry DESC) AS named
    CROSS JOIN LATERAL (SELECT * FROM audit_entries e WHERE ${where} OFFSET 0) AS e
    ORDER BY named.entry DESC LIMIT ${most}`;
  return { text, values };
}
