import type { Vault } from './vault.js';

/** A column of values that are sealed as JSON, each for its row. */
export class SealedColumn<Value> {
  constructor(
    private readonly vault: Vault,
    private readonly table: string,
    private readonly column: string,
  ) {}

  seal(row: string, value: Value): Buffer {
    return this.vault.seal({ table: this.table, column: this.column, row }, JSON.stringify(value ?? null));
  }

  /** Null stays null. */
  sealNullable(row: string, value: Value | null | undefined): Buffer | null {
    return value == null ? null : this.seal(row, value);
  }

  open(row: string, sealed: Uint8Array): Value;
  open(row: string, sealed: Uint8Array | null): Value | null;
  open(row: string, sealed: Uint8Array | null): Value | null {
    if (sealed === null) return null;
    return JSON.parse(this.vault.open({ table: this.table, column: this.column, row }, sealed)) as Value;
  }
}
