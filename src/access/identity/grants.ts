import type pg from 'pg';
import type { MacFields, Macs } from '../../vault/macs.js';

/** A row that grants rights, with its columns by their aliases. */
export interface GrantRow {
  mac: Buffer | null;
}

type Sql = Pick<pg.ClientBase, 'query'>;

/** Rows per statement. */
const PAGE = 1_000;

/**
 * A table whose rows grant rights to the caller that shows their secret. A row grants nothing without a valid MAC over all that
 * it grants, so that write access to the database alone gives no access to what the service can read.
 */
export class GrantTable<Row extends { id: string }, Stored extends Row & GrantRow = Row & GrantRow> {
  /** SQL of the covered columns and the MAC. */
  readonly selected: string;

  /** @param columns the covered columns by their aliases @param more SQL of further values to select */
  constructor(
    readonly name: string,
    private readonly columns: Record<keyof Row & string, string>,
    more: readonly string[] = [],
  ) {
    const covered = Object.entries<string>(columns).map(([alias, column]) => `${column} AS "${alias}"`);
    this.selected = [...covered, ...more, 'mac'].join(', ');
  }

  /** True if this service wrote the row as it is. */
  isGenuine(macs: Macs, row: Row & GrantRow): boolean {
    return macs.verify(this.purpose, this.covered(row), row.mac);
  }

  macOf(macs: Macs, row: Row): Buffer {
    return macs.sign(this.purpose, this.covered(row));
  }

  /** Writes the MAC of a row that this transaction made or changed. */
  async sign(sql: Sql, macs: Macs, row: Row): Promise<Buffer> {
    const mac = this.macOf(macs, row);
    await sql.query(`UPDATE ${this.name} SET mac = $2 WHERE id = $1`, [row.id, mac]);
    return mac;
  }

  /** All rows, page by page. */
  async *rows(sql: Sql): AsyncGenerator<Stored> {
    for (let after: string | null = null; ; ) {
      const { rows }: pg.QueryResult<Stored> = await sql.query(
        `SELECT ${this.selected} FROM ${this.name} WHERE $1::uuid IS NULL OR id > $1 ORDER BY id LIMIT ${PAGE}`,
        [after],
      );
      yield* rows;
      if (rows.length < PAGE) return;
      after = rows.at(-1)?.id ?? null;
    }
  }

  /** The ids of rows without a valid MAC. */
  async withoutMac(sql: Sql, macs: Macs): Promise<string[]> {
    const ids: string[] = [];
    for await (const row of this.rows(sql)) if (!this.isGenuine(macs, row)) ids.push(row.id);
    return ids;
  }

  /** Renews valid MACs by the first key, unless a row changes concurrently. @returns how many it renewed */
  async renewMacs(sql: Sql, macs: Macs): Promise<number> {
    let renewed = 0;
    for await (const row of this.rows(sql)) {
      if (!row.mac || macs.isCurrent(row.mac) || !this.isGenuine(macs, row)) continue;
      const { rowCount } = await sql.query(`UPDATE ${this.name} SET mac = $3 WHERE id = $1 AND mac = $2`, [
        row.id,
        row.mac,
        this.macOf(macs, row),
      ]);
      renewed += rowCount ?? 0;
    }
    return renewed;
  }

  private get purpose(): string {
    return `grant ${this.name}`;
  }

  private covered(row: Row): MacFields {
    return (Object.keys(this.columns) as (keyof Row & string)[]).map((alias) => plain(row[alias]));
  }
}

/** A value of a column in a form that differs for each value. */
function plain(value: unknown): MacFields[number] {
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(plain);
  return value as string | null;
}
