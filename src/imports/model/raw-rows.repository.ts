import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { Profile } from '../../people/model/profile.js';
import { type SealedPlace, Vault } from '../../vault/vault.js';

type Sql = Pick<Pool | PoolClient, 'query'>;

/** What a row was read as: its cells (see `read/raw-row.ts`), and an accepted one's profile. */
export interface RawRows {
  raw: string;
  profile?: Profile;
}

/** Cells of consecutive rows by their row number: sealed together, since sealing each would cost more than reading it. */
export type CellsBlock = ReadonlyMap<number, RawRows>;

/** A block as it is stored. */
export interface SealedCells {
  firstRow: number;
  lastRow: number;
  sealed: Buffer;
}

type SealedBlock = Omit<SealedCells, 'lastRow'>;

/** A row `r` of the block `c` of the import $1. */
const IN_BLOCK = 'r.import_id = $1 AND r.row_no BETWEEN c.first_row AND c.last_row';

/**
 * A row `r` stands in the file of rejected rows or, while $2 says that its import may be retried, may come to stand
 * there: planned anew, a client is rejected when a provider whom its row names is gone by then. A provider names nobody,
 * a double was rejected by the first plan, and a client without a list got the default provider or was rejected, too.
 */
const IS_SHOWN = `(r.outcome = 'rejected' OR $2::boolean AND r.kind = 'client' AND (
  r.outcome IN ('pending', 'failed', 'needsReview')
  OR r.outcome = 'skipped' AND r.code = 'changed-since-plan' AND r.planned <> 'delete'))`;

/** The cells of an import's rows: of all until the plan is made, after it of those that are or may yet be rejected. */
@Injectable()
export class RawRowsRepository {
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

  /** The block that holds a row's cells; undefined when they are no longer kept. */
  async around(importId: string, rowNo: number, sql: Sql = this.database.pool): Promise<CellsBlock | undefined> {
    const { rows } = await sql.query<SealedBlock>(
      `SELECT first_row AS "firstRow", sealed FROM import_raw_rows WHERE import_id = $1 AND first_row <= $2 AND last_row >= $2`,
      [importId, rowNo],
    );
    return rows[0] && this.open(importId, rows[0]);
  }

  /** The blocks that hold rows of a condition, one at a time, with the numbers of those. @param which of a row `r` */
  async *blocksWith(
    tx: PoolClient,
    importId: string,
    which: string,
  ): AsyncGenerator<{ rowNos: number[]; block: CellsBlock }> {
    for (let after = 0; ; ) {
      const { rows } = await tx.query<SealedBlock & { rowNos: number[] }>(
        `SELECT c.first_row AS "firstRow", c.sealed, found.row_nos AS "rowNos" FROM import_raw_rows c
         CROSS JOIN LATERAL (
           SELECT array_agg(r.row_no) AS row_nos FROM import_rows r WHERE ${IN_BLOCK} AND (${which})) AS found
         WHERE c.import_id = $1 AND c.first_row > $2 AND found.row_nos IS NOT NULL ORDER BY c.first_row LIMIT 1`,
        [importId, after],
      );
      const [found] = rows;
      if (!found) return;
      yield { rowNos: found.rowNos, block: this.open(importId, found) };
      after = found.firstRow;
    }
  }

  /**
   * Forgets the cells that no file of rejected rows will show, a block at a time.
   *
   * @param mayBeRetried false: the import has ended for good, so that no more of its rows are going to be rejected
   */
  async forget(tx: PoolClient, importId: string, { mayBeRetried }: { mayBeRetried: boolean }): Promise<void> {
    // A subquery with a limit goes by the index, however little the planner knows of rows that were just written.
    await tx.query(
      `DELETE FROM import_raw_rows c WHERE c.import_id = $1 AND (
         SELECT true FROM import_rows r WHERE ${IN_BLOCK} AND ${IS_SHOWN} ORDER BY r.row_no LIMIT 1) IS NULL`,
      [importId, mayBeRetried],
    );
    const { rows } = await tx.query<{ firstRow: number }>(
      `SELECT first_row AS "firstRow" FROM import_raw_rows c WHERE c.import_id = $1 AND (
         SELECT true FROM import_rows r WHERE ${IN_BLOCK} AND ${IS_SHOWN} IS NOT TRUE ORDER BY r.row_no LIMIT 1)`,
      [importId, mayBeRetried],
    );
    for (const { firstRow } of rows) await this.forgetOthers(tx, importId, firstRow, mayBeRetried);
  }

  private async forgetOthers(tx: PoolClient, importId: string, firstRow: number, mayBeRetried: boolean): Promise<void> {
    const { rows } = await tx.query<SealedBlock & { shown: number[] }>(
      `SELECT first_row AS "firstRow", sealed, ARRAY(
         SELECT r.row_no FROM import_rows r WHERE ${IN_BLOCK} AND ${IS_SHOWN}) AS shown
       FROM import_raw_rows c WHERE c.import_id = $1 AND c.first_row = $3`,
      [importId, mayBeRetried, firstRow],
    );
    for (const { shown, ...sealed } of rows) {
      const block = this.open(importId, sealed);
      const kept = new Map(shown.flatMap((rowNo) => entryOf(block, rowNo)));
      if (kept.size === block.size) continue;
      await tx.query('UPDATE import_raw_rows SET sealed = $3 WHERE import_id = $1 AND first_row = $2', [
        importId,
        firstRow,
        this.sealAt(importId, firstRow, kept),
      ]);
    }
  }

  private sealAt(importId: string, firstRow: number, cells: CellsBlock): Buffer {
    return this.vault.seal(placeOf(importId, firstRow), JSON.stringify([...cells]));
  }

  private open(importId: string, { firstRow, sealed }: SealedBlock): CellsBlock {
    return new Map(JSON.parse(this.vault.open(placeOf(importId, firstRow), sealed)) as [number, RawRows][]);
  }
}

function entryOf(block: CellsBlock, rowNo: number): [number, RawRows][] {
  const cells = block.get(rowNo);
  return cells ? [[rowNo, cells]] : [];
}

function placeOf(importId: string, firstRow: number): SealedPlace {
  return { table: 'import_raw_rows', column: 'sealed', row: `${importId}/${firstRow}` };
}
