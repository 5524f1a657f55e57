import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { ProfileSeal } from '../../people/rules/profile.js';
import { undefinedIfUnreadable } from '../../vault/unreadable-value.js';
import type { RowCells } from '../parse/row/import-row.js';
import { rowPlace } from '../upload/row-places.js';
import { StagingRepository } from '../upload/staging.repository.js';

interface StoredRow {
  rowNo: number;
  kind: string | null;
  externalId: string | null;
  profile: Buffer | null;
  cells: Buffer | null;
  providers: string[] | null;
  platformUserId: string | null;
}

/** The cells of rows, by the fields of the documented columns. */
@Injectable()
export class RowCellsRepository {
  constructor(
    private readonly database: Database,
    private readonly seal: ProfileSeal,
    private readonly staging: StagingRepository,
  ) {}

  /** The cells of some rows of an import, by row number. A row is missing if its content is no longer stored, or unreadable. */
  async of(importId: string, rowNos: readonly number[], tx?: PoolClient): Promise<Map<number, RowCells>> {
    const { rows } = await (tx ?? this.database.pool).query<StoredRow>(
      `SELECT row_no AS "rowNo", kind, external_id AS "externalId", profile, cells, providers, platform_user_id AS "platformUserId"
       FROM import_rows WHERE import_id = $1 AND row_no = ANY ($2::int[])`,
      [importId, rowNos],
    );
    const cells = new Map<number, RowCells>();
    for (const row of rows) {
      const found = await Promise.resolve()
        .then(() => this.open(importId, row))
        .catch(undefinedIfUnreadable);
      if (found) cells.set(row.rowNo, found);
    }
    return cells;
  }

  private open(importId: string, row: StoredRow): RowCells | undefined {
    const { rowNo, kind, externalId, providers, platformUserId } = row;
    // References of FHIR are resolved after the cells were stored.
    const list = providers?.length && { providers: providers.join('|') };
    const known = { ...(kind && { kind }), ...(externalId && { externalId }), ...list };
    if (row.cells) return { ...known, ...this.staging.openCells(importId, rowNo, row.cells) };
    if (!row.profile) return undefined;
    const profile = this.seal.openAt(rowPlace(importId, rowNo, 'profile'), row.profile);
    return { ...known, ...profile, ...(platformUserId !== null && { platformUserId }) };
  }
}
