import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Database } from '../database/database.js';
import type { Profile } from '../people/profile.js';
import { type SealedPlace, Vault } from '../vault/vault.js';

type Sql = Pick<Pool | PoolClient, 'query'>;

/** What a row was read as: its cells (see `read/raw-row.ts`), and an accepted one's profile. */
export interface RowCells {
  raw: string;
  profile?: Profile;
}

/** Cells of consecutive rows by their row number: sealed together, since sealing each would cost more than reading it. */
export type CellsBlock = ReadonlyMap<number, RowCells>;

/** A block as it is stored. */
export interface SealedCells {
  firstRow: number;
  lastRow: number;
  sealed: Buffer;
}

type SealedBlock = Omit<SealedCells, 'lastRow'>;

/** The cells of an import's rows: kept until the plan is made, and after it for rejected rows only. */
@Injectable()
export class RowCellsRepository {
  constructor(
    private readonly database: Database,
    private readonly vault: Vault,
  ) {}

  /** Seals the cells of at least one row. */
  seal(importId: string, cells: CellsBlock): SealedCells {
    const rowNos = [...cells.keys()];
    const firstRow = rowNos[0] ?? 0;
    return { firstRow, lastRow: rowNos.at(-1) ?? 0, sealed: this.sealAt(importId, firstRow, cells) };
  }

  /** Stores a block. */
  async add(tx: PoolClient, importId: string, { firstRow, lastRow, sealed }: SealedCells): Promise<void> {
    await tx.query('INSERT INTO import_cells (import_id, first_row, last_row, sealed) VALUES ($1, $2, $3, $4)', [
      importId,
      firstRow,
      lastRow,
      sealed,
    ]);
  }

  /** The block that holds a row's cells; undefined when they are no longer kept. */
  async around(importId: string, rowNo: number, sql: Sql = this.database.pool): Promise<CellsBlock | undefined> {
    const { rows } = await sql.query<SealedBlock>(
      `SELECT first_row AS "firstRow", sealed FROM import_cells WHERE import_id = $1 AND first_row <= $2 AND last_row >= $2`,
      [importId, rowNo],
    );
    return rows[0] && this.open(importId, rows[0]);
  }

  /** Forgets the cells of every row that was not rejected, a block at a time. */
  async keepRejected(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `DELETE FROM import_cells WHERE import_id = $1 AND first_row NOT IN (
         SELECT (SELECT c.first_row FROM import_cells c WHERE c.import_id = $1 AND c.first_row <= r.row_no
           ORDER BY c.first_row DESC LIMIT 1)
         FROM import_rows r WHERE r.import_id = $1 AND r.outcome = 'rejected')`,
      [importId],
    );
    for (let after = 0, block = await this.next(tx, importId, 0); block; block = await this.next(tx, importId, after)) {
      after = block.firstRow;
      await this.keep(tx, importId, block);
    }
  }

  private async next(
    tx: PoolClient,
    importId: string,
    after: number,
  ): Promise<(SealedBlock & { rejected: number[] }) | undefined> {
    const { rows } = await tx.query<SealedBlock & { rejected: number[] }>(
      `SELECT first_row AS "firstRow", sealed, ARRAY(
         SELECT row_no FROM import_rows r WHERE r.import_id = $1 AND r.row_no BETWEEN c.first_row AND c.last_row
           AND r.outcome = 'rejected') AS rejected
       FROM import_cells c WHERE import_id = $1 AND first_row > $2 ORDER BY first_row LIMIT 1`,
      [importId, after],
    );
    return rows[0];
  }

  private async keep(tx: PoolClient, importId: string, block: SealedBlock & { rejected: number[] }): Promise<void> {
    const rejected = new Set(block.rejected);
    const kept = new Map([...this.open(importId, block)].filter(([rowNo]) => rejected.has(rowNo)));
    await tx.query('UPDATE import_cells SET sealed = $3 WHERE import_id = $1 AND first_row = $2', [
      importId,
      block.firstRow,
      this.sealAt(importId, block.firstRow, kept),
    ]);
  }

  private sealAt(importId: string, firstRow: number, cells: CellsBlock): Buffer {
    return this.vault.seal(placeOf(importId, firstRow), JSON.stringify([...cells]));
  }

  private open(importId: string, { firstRow, sealed }: SealedBlock): CellsBlock {
    return new Map(JSON.parse(this.vault.open(placeOf(importId, firstRow), sealed)) as [number, RowCells][]);
  }
}

function placeOf(importId: string, firstRow: number): SealedPlace {
  return { table: 'import_cells', column: 'sealed', row: `${importId}/${firstRow}` };
}
