import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import { SEALED_TABLES, type SealedTable } from './sealed-columns.js';
import { openIfReadable } from './unreadable-value.js';
import { headerOf, sealedHeader, type Vault } from './vault.js';

/** Rows per statement. Their locks last for that statement only. */
export const ROTATION_BATCH = 100;

/** Maximum number of passes over a table for rows that were locked, and the pause between two passes. */
export const MAX_PASSES = 60;
export const PASS_PAUSE_MS = 500;

/** The keys that made the values of one column. */
export interface ColumnKeys {
  table: string;
  column: string;
  /** Number of values by key name; `?` counts bytes without a valid header. */
  keys: Record<string, number>;
  /** Number of values that another key than the first one made, and that rotation recomputes. */
  stale: number;
}

/** A row that keeps its old key because a value does not open. It names the row, never the content. */
export interface UnreadableRow {
  table: string;
  column: string;
  row: string;
}

export interface RotationUse {
  /** Called after each batch with the number of values, or of rows, that it recomputed. */
  onProgress: (made: number) => void;
  onUnreadable: (row: UnreadableRow) => void;
}

type Sql = Pick<Client, 'query'>;
type Row = Record<string, Buffer | string | null>;

/** Counts the values of all sealed columns by their key: one read of each table. @param firstKey of DATA_KEYS */
export async function countKeys(sql: Sql, firstKey: string): Promise<ColumnKeys[]> {
  const counted: ColumnKeys[] = [];
  const current = sealedHeader(firstKey);
  for (const [table, { columns }] of Object.entries(SEALED_TABLES)) {
    const values = Object.keys(columns).map((column) => `('${column}', ${headerSql(`t.${column}`)})`);
    const { rows } = await sql.query<{ column: string; header: Buffer; count: number }>(
      `SELECT v.column, v.header, count(*)::int AS count FROM ${table} t
       CROSS JOIN LATERAL (VALUES ${values.join(', ')}) AS v("column", header)
       WHERE v.header IS NOT NULL GROUP BY 1, 2`,
    );
    for (const column of Object.keys(columns)) {
      const ofColumn: ColumnKeys = { table, column, keys: {}, stale: 0 };
      for (const { header, count } of rows.filter((row) => row.column === column)) {
        const key = headerOf(header)?.keyId ?? '?';
        ofColumn.keys[key] = (ofColumn.keys[key] ?? 0) + count;
        if (!header.equals(current)) ofColumn.stale += count;
      }
      counted.push(ofColumn);
    }
  }
  return counted;
}

/**
 * Encrypts all values of other keys again with the first key, table by table in the order of their keys. It can be stopped and
 * started again at any time, because it skips values of the first key. It locks only rows that are free: a locked row gets
 * its turn in a later pass, and a row that another process wrote since then is skipped.
 */
export async function rotate(sql: Sql, vault: Vault, firstKey: string, use: RotationUse): Promise<void> {
  await readByKeys(sql);
  for (const [name, table] of Object.entries(SEALED_TABLES)) {
    const unreadable = new Set<string>();
    const onUnreadable = (row: UnreadableRow) => {
      if (!unreadable.has(`${row.column} ${row.row}`)) use.onUnreadable(row);
      unreadable.add(`${row.column} ${row.row}`);
    };
    const rotation = new TableRotation(sql, vault, name, table, sealedHeader(firstKey), { ...use, onUnreadable });
    for (let passes = 1; (await rotation.pass()) > 0 && passes < MAX_PASSES; passes++) await delay(PASS_PAUSE_MS);
  }
}

/** Makes a connection read by primary keys, even with stale statistics: a sort for each batch would read the whole table. */
export async function readByKeys(sql: Sql): Promise<void> {
  for (const way of ['seqscan', 'bitmapscan', 'sort', 'hashjoin', 'mergejoin']) {
    await sql.query(`SET enable_${way} = off`);
  }
}

/** The values of one table. */
class TableRotation {
  private readonly keys: string[];
  private readonly columns: string[];

  constructor(
    private readonly sql: Sql,
    private readonly vault: Vault,
    private readonly name: string,
    private readonly table: SealedTable,
    private readonly header: Buffer,
    private readonly use: RotationUse,
  ) {
    this.keys = Object.keys(table.key);
    this.columns = Object.keys(table.columns);
  }

  /** @returns the number of values that it skipped because their rows were locked or changed */
  async pass(): Promise<number> {
    let skipped = 0;
    for (let after: Row | undefined; ; ) {
      const rows = await this.staleAfter(after);
      const fresh = rows.map((row) => this.resealed(row));
      const given = rows.map((row, at) => ({ row, fresh: fresh[at] ?? {} })).filter(({ fresh }) => countOf(fresh) > 0);
      const stored = given.length === 0 ? new Set() : await this.store(given);
      const done = given.filter(({ row }) => stored.has(this.nameOf(row)));
      skipped += sum(given.map(({ fresh }) => countOf(fresh))) - sum(done.map(({ fresh }) => countOf(fresh)));
      this.use.onProgress(sum(done.map(({ fresh }) => countOf(fresh))));
      after = rows.at(-1);
      if (rows.length < ROTATION_BATCH) return skipped;
    }
  }

  private async staleAfter(after: Row | undefined): Promise<Row[]> {
    const { keys, columns, table } = this;
    const typed = keys.map((key, at) => `$${at + 2}::${table.key[key]}`);
    const isStale = (column: string) => `substring(t.${column} FOR ${this.header.length}) <> $1::bytea`;
    const shown = columns.flatMap((column) => {
      const stale = `CASE WHEN ${isStale(column)} THEN t.${column} END AS ${column}`;
      return [stale, `${table.columns[column]?.row} AS ${column}_row`];
    });
    const { rows } = await this.sql.query<Row>(
      `SELECT ${keys.map((key) => `t.${key}::text AS ${key}_key`)}, ${shown}
       FROM ${this.name} t ${table.join ?? ''}
       WHERE (${columns.map(isStale).join(' OR ')})
         ${after ? `AND (${keys.map((key) => `t.${key}`)}) > (${typed})` : ''}
       ORDER BY ${keys.map((key) => `t.${key}`)} LIMIT ${ROTATION_BATCH}`,
      [this.header, ...(after ? keys.map((key) => after[`${key}_key`]) : [])],
    );
    return rows;
  }

  /** The new values of a row by column, without those that do not open. */
  private resealed(row: Row): Record<string, Buffer> {
    const fresh: Record<string, Buffer> = {};
    for (const [column, { table = this.name, column: as = column }] of Object.entries(this.table.columns)) {
      const sealed = row[column];
      if (!(sealed instanceof Buffer)) continue;
      const place = { table, column: as, row: String(row[`${column}_row`]) };
      const plain = openIfReadable(() => this.vault.openBytes(place, sealed));
      if (plain) fresh[column] = this.vault.seal(place, plain);
      else this.use.onUnreadable({ table: this.name, column, row: this.nameOf(row) });
    }
    return fresh;
  }

  /** Stores new values in rows that are unlocked and unchanged since they were read. @returns those rows */
  private async store(given: readonly { row: Row; fresh: Record<string, Buffer> }[]): Promise<Set<string>> {
    const { keys, columns, table } = this;
    const types = [...keys.map((key) => table.key[key]), ...columns.flatMap(() => ['bytea', 'bytea'])];
    const names = [...keys.map((key) => `${key}_key`), ...columns.flatMap((one) => [`${one}_old`, `${one}_new`])];
    const values = [
      ...keys.map((key) => given.map(({ row }) => row[`${key}_key`])),
      ...columns.flatMap((one) => [
        given.map(({ row, fresh }) => (fresh[one] ? row[one] : null)),
        given.map(({ fresh }) => fresh[one] ?? null),
      ]),
    ];
    const isRow = keys.map((key) => `t.${key} = g.${key}_key`).join(' AND ');
    const { rows } = await this.sql.query<Row>(
      `WITH given AS MATERIALIZED (
         SELECT * FROM unnest(${types.map((type, at) => `$${at + 1}::${type}[]`)}) AS g(${names})),
       free AS MATERIALIZED (
         SELECT g.* FROM given g JOIN ${this.name} t ON ${isRow}
         WHERE ${columns.map((one) => `(g.${one}_old IS NULL OR t.${one} = g.${one}_old)`).join(' AND ')}
         FOR NO KEY UPDATE OF t SKIP LOCKED)
       UPDATE ${this.name} t SET ${columns.map((one) => `${one} = coalesce(g.${one}_new, t.${one})`)}
       FROM free g WHERE ${isRow} RETURNING ${keys.map((key) => `t.${key}::text AS ${key}_key`)}`,
      values,
    );
    return new Set(rows.map((row) => this.nameOf(row)));
  }

  private nameOf(row: Row): string {
    return this.keys.map((key) => row[`${key}_key`]).join('/');
  }
}

/** The header of a sealed value in SQL: version, length of the key's name, its name. */
function headerSql(column: string): string {
  const length = `CASE WHEN octet_length(${column}) > 1 THEN least(get_byte(substring(${column} FOR 2), 1), 32) ELSE 0 END`;
  return `substring(${column} FOR 2 + ${length})`;
}

const countOf = (fresh: Record<string, Buffer>): number => Object.keys(fresh).length;

const sum = (numbers: readonly number[]): number => numbers.reduce((left, right) => left + right, 0);
