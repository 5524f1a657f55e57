import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import type { DataSubject, ErasedCopies } from '../../people/store/client-data.js';
import { HELD_EMAILS, isNotIn } from '../../people/store/legal-hold.js';
import { ERASED } from '../model/import.js';
import { IS_NAMED_BY_EMAIL } from '../model/named-rows.js';
import { IS_OPENED_BEFORE_DELETION, StoredRecords } from '../upload/stored-records.repository.js';

/** Erases what imports store about deleted people. */
@Injectable()
export class ImportErasure {
  constructor(
    private readonly prisma: PrismaService,
    private readonly records: StoredRecords,
  ) {}

  /**
   * Empties the rows that name a person by its id, or without an id by its email, and skips those that are not finished.
   * Imports that were opened after the deletion was stated keep theirs: they bring the person back.
   */
  async erase(
    tx: Tx,
    { kind, externalIds, emails }: Pick<DataSubject, 'kind' | 'externalIds' | 'emails'>,
  ): Promise<ErasedCopies> {
    const sql = this.prisma.sql(tx);
    const isOpen = `(r.outcome = 'pending' AND r.planned IS DISTINCT FROM 'delete')`;
    const named: [condition: string, names: readonly unknown[]][] = [
      ['r.external_id = ANY ($5::text[])', externalIds],
      [`${IS_NAMED_BY_EMAIL('$5')} AND ${isNotIn('r.email_fingerprint', HELD_EMAILS)}`, emails],
    ];
    let rows = await this.records.erase(sql, kind, externalIds);
    // A statement for each index: with stale statistics, a planner that is given both reads all rows.
    for (const [isNamed, names] of named) {
      if (names.length === 0) continue;
      const { rowCount } = await sql.query(
        `UPDATE import_rows r SET profile = NULL, cells = NULL, profile_hash = NULL, email_fingerprint = NULL, phase = NULL,
           outcome = CASE WHEN ${isOpen} THEN 'skipped' ELSE r.outcome END,
           code = CASE WHEN ${isOpen} THEN $3 ELSE r.code END, hint = CASE WHEN ${isOpen} THEN $4 ELSE r.hint END
         FROM imports i
         WHERE ${isNamed} AND (r.kind = $1 OR r.kind IS NULL) AND (r.profile IS NOT NULL OR r.cells IS NOT NULL)
           AND i.id = r.import_id AND ${IS_OPENED_BEFORE_DELETION('$1', '$2')}`,
        [kind, externalIds, ERASED.code, ERASED.hint, names],
      );
      rows += rowCount ?? 0;
    }
    return { rows };
  }
}
