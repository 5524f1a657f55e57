import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Database } from '../../database/database.js';
import type { AuditResponse } from './audit.dto.js';
import type { AuditRecord, SubjectKind } from './audit-record.js';

/** Appends entries with their subjects; each waits for its seal. */
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

/** An entry `e` with its subjects, as it is shown. */
const SHOWN = `e.id::text AS id, e.at, e.key_id AS "keyId", e.key_name AS "keyName", e.on_behalf_of AS "onBehalfOf",
  e.purpose, e.action, e.outcome, e.request_id AS "requestId", e.source, e.counts,
  coalesce((SELECT jsonb_object_agg(of_kind.kind, of_kind.ids) FROM (
    SELECT kind, jsonb_agg(subject ORDER BY subject) AS ids FROM audit_subjects WHERE entry = e.id GROUP BY kind
  ) AS of_kind), '{}') AS subjects`;

/**
 * Has the planner read a page of a subject's entries in the order of their index. Where it believes them few it would
 * collect and sort all of them: seconds for a subject with a hundred thousand, among ten million.
 */
const IN_ORDER_OF_INDEX = 'SET LOCAL enable_bitmapscan = off';

/**
 * By how much an entry's moment may lie before that of one with a lower id: a clock is set back, or another server, with
 * another clock, takes over. One that is older than a moment by more than this has only older ones before it: a search
 * looks at the entries of so much time more at each of its ends.
 */
const SLACK = `interval '1 day'`;

/** Kinds of which an id may be. */
export type NamedKinds = readonly [SubjectKind, ...SubjectKind[]];

/** What is looked for; all that is given must hold. */
export interface AuditSearch {
  /** Each an id, and the kinds of which it may be. */
  subjects: [kinds: NamedKinds, id: string][];
  id?: string;
  keyId?: string;
  action?: string;
  /** Ids of entries, as decimal texts; both exclusive. */
  beforeId?: string;
  afterId?: string;
  /** RFC 3339; `since` inclusive, `until` exclusive. */
  since?: string;
  until?: string;
  limit: number;
}

/** The rows of the audit trail. */
@Injectable()
export class AuditRepository {
  constructor(private readonly database: Database) {}

  /** Adds entries, which stand or fall together. @param sql a transaction, or the pool */
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

  /** The newest entries first. */
  async find(search: AuditSearch): Promise<AuditResponse[]> {
    const { text, values } = searchStatement(search);
    return this.database.transaction(async (tx) => {
      await tx.query(IN_ORDER_OF_INDEX);
      return (await tx.query<AuditResponse>(text, values)).rows;
    });
  }
}

/**
 * A subject leads to its entries by the order of its index, whatever the statistics say: OFFSET 0 keeps the planner from
 * another join. Without one the entries are read in the order of their ids, of a key or an action by its own index.
 */
function searchStatement(search: AuditSearch): { text: string; values: unknown[] } {
  const { id, subjects, keyId, action, beforeId, afterId, since, until, limit } = search;
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
  when(afterId, (id) => `e.id > ${id}::bigint`);
  when(
    since,
    (at) => `e.at >= ${at}::timestamptz AND e.id > coalesce((SELECT id FROM audit_entries
    WHERE at < ${at}::timestamptz - ${SLACK} ORDER BY at DESC LIMIT 1), 0)`,
  );
  when(
    until,
    (at) => `e.at < ${at}::timestamptz AND e.id < coalesce((SELECT id FROM audit_entries
    WHERE at >= ${at}::timestamptz + ${SLACK} ORDER BY at LIMIT 1), 9223372036854775807)`,
  );
  const named = subjects.map(([[kind, ...others], id]) => {
    const isKind =
      others.length === 0 ? `s.kind = ${value(kind)}` : `s.kind = ANY (${value([kind, ...others])}::text[])`;
    return `${isKind} AND s.subject = ${value(id)}`;
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
