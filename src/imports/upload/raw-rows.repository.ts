import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { Profile } from '../../people/model/profile.js';
import { type SealedPlace, Vault } from '../../vault/vault.js';

type Sql = Pick<Pool | PoolClient, 'query'>;

/** What consecutive rows were read as (`raw`, see `parse/row/import-row.ts`), and an accepted one's profile. */
export type RawBlock = ReadonlyMap<number, { raw: string; profile?: Profile }>;

/** A block as it is stored. */
export interface SealedBlock {
  firstRow: number;
  lastRow: number;
  sealed: Buffer;
}

const BLOCK = 'c.first_row AS "firstRow", c.sealed';

/** A row `r` of the block `c` of the import $1. */
const IN_BLOCK = 'r.import_id = $1 AND r.row_no BETWEEN c.first_row AND c.last_row';

/**
 * A row `r` stands in the file of rejected rows, or may come to: planned anew, a client is rejected when a provider of its
 * row is gone. A provider names none, the first plan rejected duplicates, and an empty list got the default provider.
 */
const isShown = (mayBeRetried: boolean) =>
  mayBeRetried
    ? `(r.outcome = 'rejected' OR r.kind = 'client' AND (r.outcome IN ('pending', 'failed', 'needsReview')
         OR r.outcome = 'skipped' AND r.code = 'changed-since-plan' AND r.planned <> 'delete'))`
    : `(r.outcome = 'rejected')`;

/** The raw rows of an import, sealed in blocks: of all rows until the plan, then of those that are or may be rejected. */
@Injectable()
export class RawRowsRepository {
  constructor(
    private readonly database: Database,
    private readonly vault: Vault,
  ) {}

  /** Seals at least one row. */
  seal(importId: string, block: RawBlock): SealedBlock {
    const [firstRow = 0, ...more] = block.keys();
    return { firstRow, lastRow: more.at(-1) ?? firstRow, sealed: this.sealAt(importId, firstRow, block) };
  }

  /** The block that holds a row; undefined when it is no longer kept. */
  async blockOf(importId: string, rowNo: number, sql: Sql = this.database.pool): Promise<RawBlock | undefined> {
    const { rows } = await sql.query<SealedBlock>(
      `SELECT ${BLOCK} FROM import_raw_rows c WHERE c.import_id = $1 AND c.first_row <= $2 AND c.last_row >= $2`,
      [importId, rowNo],
    );
    return rows[0] && this.open(importId, rows[0]);
  }

  /** The blocks that hold rows of a condition, with the numbers of those, to be opened one at a time. @param which of a row `r` */
  async *blocksWith(tx: PoolClient, importId: string, which: string) {
    const { rows } = await tx.query<{ firstRow: number; rowNos: number[] }>(
      `SELECT c.first_row AS "firstRow", found.row_nos AS "rowNos" FROM import_raw_rows c CROSS JOIN LATERAL (
         SELECT array_agg(r.row_no) AS row_nos FROM import_rows r WHERE ${IN_BLOCK} AND (${which})) AS found
       WHERE c.import_id = $1 AND found.row_nos IS NOT NULL ORDER BY c.first_row`,
      [importId],
    );
    for (const { firstRow, rowNos } of rows) {
      const found = await tx.query<SealedBlock>(
        `SELECT ${BLOCK} FROM import_raw_rows c WHERE c.import_id = $1 AND c.first_row = $2`,
        [importId, firstRow],
      );
      for (const sealed of found.rows) yield { firstRow, rowNos, block: this.open(importId, sealed) };
    }
  }

  /**
   * Deletes what no file of rejected rows will show, a block at a time.
   *
   * @param mayBeRetried false: the import has ended for good, so that no more of its rows are going to be rejected
   */
  async discard(tx: PoolClient, importId: string, { mayBeRetried }: { mayBeRetried: boolean }): Promise<void> {
    const shown = isShown(mayBeRetried);
    // A subquery with a limit goes by the index, however little the planner knows of rows that were just written.
    await tx.query(
      `DELETE FROM import_raw_rows c WHERE c.import_id = $1 AND (
         SELECT true FROM import_rows r WHERE ${IN_BLOCK} AND ${shown} ORDER BY r.row_no LIMIT 1) IS NULL`,
      [importId],
    );
    for await (const { firstRow, rowNos, block } of this.blocksWith(tx, importId, `${shown} IS NOT TRUE`)) {
      const dropped = new Set(rowNos);
      const kept = new Map([...block].filter(([rowNo]) => !dropped.has(rowNo)));
      if (kept.size === block.size) continue;
      await tx.query('UPDATE import_raw_rows SET sealed = $3 WHERE import_id = $1 AND first_row = $2', [
        importId,
        firstRow,
        this.sealAt(importId, firstRow, kept),
      ]);
    }
  }

  private sealAt(importId: string, firstRow: number, block: RawBlock): Buffer {
    return this.vault.seal(placeOf(importId, firstRow), JSON.stringify([...block]));
  }

  private open(importId: string, { firstRow, sealed }: Pick<SealedBlock, 'firstRow' | 'sealed'>): RawBlock {
    return new Map(JSON.parse(this.vault.open(placeOf(importId, firstRow), sealed)));
  }
}

function placeOf(importId: string, firstRow: number): SealedPlace {
  return { table: 'import_raw_rows', column: 'sealed', row: `${importId}/${firstRow}` };
}
