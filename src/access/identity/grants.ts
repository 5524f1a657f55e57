import { type Tx, toBytes } from '../../database/prisma.service.js';
import type { MacFields, Macs } from '../../vault/macs.js';

/** A row that grants rights. */
export interface GrantRow {
  mac: Uint8Array | null;
}

/** A row with the database's time when it was read, because the clocks of processes differ. */
export type Timed<Row> = Row & { now: Date };

/**
 * A table whose rows grant rights to the caller that shows their secret. A row grants nothing without a valid MAC over all that
 * it grants, so that write access to the database alone gives no access to what the service can read.
 */
export class GrantTable<Row extends { id: string }> {
  /** @param columns the covered columns by their fields */
  constructor(
    readonly name: string,
    readonly columns: Readonly<Record<keyof Row & string, string>>,
  ) {}

  /** SQL of the covered columns, with the names of their fields. */
  get selected(): string {
    return Object.entries(this.columns)
      .map(([field, column]) => `${column} AS "${field}"`)
      .join(', ');
  }

  /** True if this service wrote the row as it is. */
  isGenuine(macs: Macs, row: Row & GrantRow): boolean {
    return macs.verify(this.purpose, this.covered(row), row.mac);
  }

  /** The MAC to store with a row. */
  macOf(macs: Macs, row: Row): Uint8Array<ArrayBuffer> {
    return toBytes(macs.sign(this.purpose, this.covered(row)));
  }

  /** The rows that meet an SQL condition on $1. @param more SQL of columns that the MAC does not cover */
  read<Stored>(
    db: Pick<Tx, '$queryRawUnsafe'>,
    condition: string,
    value: unknown,
    more = '',
  ): Promise<Timed<Stored>[]> {
    const columns = `${this.selected}, mac, ${more} clock_timestamp() AS now`;
    return db.$queryRawUnsafe(`SELECT ${columns} FROM ${this.name} WHERE ${condition}`, value);
  }

  private get purpose(): string {
    return `grant ${this.name}`;
  }

  private covered(row: Row): MacFields {
    return (Object.keys(this.columns) as (keyof Row & string)[]).map((field) => plain(row[field]));
  }
}

/** A value of a column in a form that differs for each value. */
function plain(value: unknown): MacFields[number] {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'no time' : value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(plain);
  return value as string | null;
}
