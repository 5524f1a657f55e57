import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Problem } from '../../http/problem/problem.js';
import { ProfileSeal } from '../../people/model/profile.js';
import { type ImportRecord, ImportsRepository } from '../model/imports.repository.js';
import type { ImportedPerson, RowCells } from '../parse/row/import-row.js';
import { type Rejection, rejection } from '../parse/row/rejection.js';
import { validateCells } from '../parse/row/validate-person.js';
import { KnownProviders } from '../upload/known-providers.js';
import { rowPlace } from '../upload/row-places.js';
import { profileOf, StagingRepository } from '../upload/staging.repository.js';
import type { CorrectedRow } from './imports.dto.js';
import type { ImportResponse } from './import-view.js';
import { ImportsService } from './imports.service.js';
import { RowCellsRepository } from './row-cells.repository.js';

/** Corrects rejected rows of a plan, which is then made again with them. */
@Injectable()
export class CorrectionsService {
  constructor(
    private readonly imports: ImportsService,
    private readonly repository: ImportsRepository,
    private readonly cells: RowCellsRepository,
    private readonly staging: StagingRepository,
    private readonly seal: ProfileSeal,
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
      throw new Problem(422, 'unknown-row', 'No rejected row is there. Only rejected rows can be corrected.', { pointer });
    }
    if (another) {
      throw new Problem(422, 'ambiguous-row', 'Several rejected rows are there. Name one by its number in `row`.', { pointer });
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
    const checked = await this.check(cells, providers);
    if ('code' in checked) await this.reject(tx, importId, rowNo, cells, checked);
    else await this.accept(tx, importId, rowNo, checked);
  }

  private async check(cells: RowCells, providers: KnownProviders): Promise<ImportedPerson | Rejection> {
    const person = validateCells(cells);
    if ('code' in person) return person;
    await providers.lookUp(person.providers ?? []);
    const unknown = person.providers?.find((id) => providers.of(id) !== 'known');
    return unknown === undefined ? person : rejection('unknown-provider', { field: 'providers', cell: unknown });
  }

  private async accept(tx: PoolClient, importId: string, rowNo: number, person: ImportedPerson): Promise<void> {
    const { kind, externalId, providers, platformUserId } = person;
    const profile = profileOf(person);
    await tx.query(
      `UPDATE import_rows SET says = 'person', corrected = true, kind = $3, external_id = $4, profile = $5, cells = NULL,
         profile_hash = $6, email_fingerprint = $7, providers = $8, platform_user_id = $9,
         outcome = 'pending', planned = NULL, code = NULL, field = NULL, hint = NULL
       WHERE import_id = $1 AND row_no = $2`,
      [
        ...[importId, rowNo, kind, externalId, this.seal.sealAt(rowPlace(importId, rowNo, 'profile'), profile)],
        ...[this.seal.hash(profile), this.seal.emailFingerprint(profile.email), providers ?? null, platformUserId ?? null],
      ],
    );
  }

  private async reject(
    tx: PoolClient,
    importId: string,
    rowNo: number,
    cells: RowCells,
    { code, field, hint }: Rejection,
  ): Promise<void> {
    await tx.query(
      `UPDATE import_rows SET says = 'rejected', corrected = true, profile = NULL, cells = $3, code = $4, field = $5, hint = $6
       WHERE import_id = $1 AND row_no = $2`,
      [importId, rowNo, this.staging.sealCells(importId, rowNo, cells), code, field ?? null, hint],
    );
  }
}
