import { setImmediate } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { RawRowsRepository } from '../model/raw-rows.repository.js';
import { idsInLongCells, mentionedIds } from './mentioned-ids.js';

/** A row `r` that may cover several lines: the next one of its file does not begin on the next line. */
const MAY_BE_LONG = `NOT EXISTS (SELECT 1 FROM import_rows n
  WHERE n.import_id = r.import_id AND n.row_no = r.row_no + 1 AND n.file = r.file AND n.line = r.line + 1)`;

/** Whom rows of an import may have meant that do not name them. */
@Injectable()
export class MentionsRepository {
  constructor(private readonly cells: RawRowsRepository) {}

  /**
   * The external ids of wanted people that stand in any cell of a rejected row, which does not say reliably whom it names,
   * or in a cell of several lines, into which a stray quote may have taken rows. Goes through the sealed blocks one at a
   * time, while the cells of all rows are kept.
   */
  async of(tx: PoolClient, importId: string): Promise<string[]> {
    const mentioned = new Set<string>();
    for (const [which, mentions] of [
      [`r.outcome = 'rejected'`, mentionedIds],
      [`r.outcome <> 'rejected' AND ${MAY_BE_LONG}`, idsInLongCells],
    ] as const) {
      for await (const { rowNos, block } of this.cells.blocksWith(tx, importId, which)) {
        const ids = new Set(rowNos.flatMap((rowNo) => [...mentions(block.get(rowNo)?.raw ?? '""')]));
        for (const id of await this.wanted(tx, [...ids])) mentioned.add(id);
        await setImmediate();
      }
    }
    return [...mentioned];
  }

  private async wanted(tx: PoolClient, ids: string[]): Promise<string[]> {
    if (ids.length === 0) return [];
    const { rows } = await tx.query<{ externalId: string }>(
      `SELECT DISTINCT external_id AS "externalId" FROM people
       WHERE kind = ANY (enum_range(NULL::person_kind)) AND external_id = ANY ($1::text[]) AND wanted`,
      [ids],
    );
    return rows.map(({ externalId }) => externalId);
  }
}
