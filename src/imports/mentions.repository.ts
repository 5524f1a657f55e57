import { setImmediate } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { mentionedIds } from './mentioned-ids.js';
import { RowCellsRepository } from './row-cells.repository.js';

/** Whom the rejected rows of an import may have meant. */
@Injectable()
export class MentionsRepository {
  constructor(private readonly cells: RowCellsRepository) {}

  /**
   * The external ids of wanted people that stand in any cell of a rejected row: such a row does not say reliably whom it
   * names. Goes through the sealed blocks one at a time, while the cells of rejected rows are kept.
   */
  async ofRejected(tx: PoolClient, importId: string): Promise<string[]> {
    const mentioned = new Set<string>();
    for await (const { rowNos, block } of this.cells.rejected(tx, importId)) {
      const ids = new Set(rowNos.flatMap((rowNo) => [...mentionedIds(block.get(rowNo)?.raw ?? '""')]));
      const { rows } = await tx.query<{ externalId: string }>(
        `SELECT DISTINCT external_id AS "externalId" FROM people
         WHERE kind = ANY (enum_range(NULL::person_kind)) AND external_id = ANY ($1::text[]) AND wanted`,
        [[...ids]],
      );
      for (const { externalId } of rows) mentioned.add(externalId);
      await setImmediate();
    }
    return [...mentioned];
  }
}
