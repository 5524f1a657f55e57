import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Problem } from '../../http/problem/problem.js';
import { type ImportRecord, ImportsRepository } from '../model/imports.repository.js';
import type { RowCells } from '../parse/row/import-row.js';
import { KnownProviders } from '../upload/known-providers.js';
import { RowCorrector } from '../upload/row-corrector.js';
import type { ImportResponse } from './import-view.js';
import type { CorrectedRow } from './imports.dto.js';
import { ImportsService } from './imports.service.js';
import { RowCellsRepository } from './row-cells.repository.js';

/** Corrects rejected rows of a plan, which is then recomputed. */
@Injectable()
export class CorrectionsService {
  constructor(
    private readonly imports: ImportsService,
    private readonly repository: ImportsRepository,
    private readonly cells: RowCellsRepository,
    private readonly corrector: RowCorrector,
  ) {}

  /** @throws {Problem} 404; 409 `wrong-state`; 422 `unknown-row` or `ambiguous-row` */
  async correct(id: string, rows: readonly CorrectedRow[]): Promise<ImportResponse> {
    return this.imports.transition(id, ['planned'], async (tx, record) => {
      const providers = new KnownProviders(tx, id);
      for (const [position, row] of rows.entries()) {
        const rowNo = await this.find(tx, record, row, `/rows/${position}`);
        await this.correctRow(tx, id, rowNo, row, providers);
      }
      await this.repository.replan(tx, id);
    });
  }

  /** The number of the rejected row that is meant. */
  private async find(tx: PoolClient, record: ImportRecord, row: CorrectedRow, pointer: string): Promise<number> {
    const files = this.repository.filesOf(record);
    const file = row.file === undefined ? null : files.findIndex(({ name }) => name === row.file) + 1;
    const { rows } = await tx.query<{ rowNo: number }>(
      `SELECT row_no AS "rowNo" FROM import_rows WHERE import_id = $1 AND outcome = 'rejected'
         AND ($2::int IS NULL OR row_no = $2) AND ($3::int IS NULL OR file = $3) AND ($4::int IS NULL OR line = $4) LIMIT 2`,
      [record.id, row.row ?? null, file, row.line ?? null],
    );
    const [found, another] = rows;
    if (!found) {
      throw new Problem('unknown-row', 'This row is missing or not rejected. Only rejected rows can be corrected.', {
        pointer,
      });
    }
    if (another) {
      throw new Problem('ambiguous-row', 'Several rejected rows match. Name one by its number in `row`.', {
        pointer,
      });
    }
    return found.rowNo;
  }

  private async correctRow(
    tx: PoolClient,
    importId: string,
    rowNo: number,
    { row: _, file: __, line: ___, providers: list, ...given }: CorrectedRow,
    providers: KnownProviders,
  ): Promise<void> {
    const read = (await this.cells.of(importId, [rowNo], tx)).get(rowNo) ?? {};
    const cells: RowCells = { ...read, ...given, ...(list && { providers: list.join('|') }) };
    await this.corrector.correct(tx, importId, rowNo, cells, providers);
    await tx.query('UPDATE import_rows SET corrected = true WHERE import_id = $1 AND row_no = $2', [importId, rowNo]);
  }
}
