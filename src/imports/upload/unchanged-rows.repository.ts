import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { PersonKind } from '../../people/model/person.js';
import { ProfileSeal } from '../../people/model/profile.js';
import { arrayLiteral } from '../model/copy-text.js';
import { type CellsBlock, RawRowsRepository, type SealedCells } from '../model/raw-rows.repository.js';

/** A row whose person may be known as it says. */
export interface KnownCandidate {
  rowNo: number;
  file: number;
  line: number;
  kind: PersonKind;
  externalId: string;
  /** 32 bytes in hex (`ProfileSeal.hash`). */
  profileHash: string;
  providers: readonly string[];
}

/**
 * Rows that say what is known and mirrored already. They are found while the file is read, and stored once with their
 * outcome: nothing of them is sealed by itself or written again, which is what makes a re-import cheap.
 */
@Injectable()
export class UnchangedRowsRepository {
  constructor(
    private readonly cells: RawRowsRepository,
    private readonly seal: ProfileSeal,
  ) {}

  /**
   * Stores a block of cells and, with the same statement, those of the candidates whose person is as they say.
   *
   * @returns the row numbers of those
   */
  async store(
    tx: PoolClient,
    importId: string,
    candidates: readonly KnownCandidate[],
    { firstRow, lastRow, sealed }: SealedCells,
  ): Promise<Set<number>> {
    const { rows } = await tx.query<{ row_no: number }>(
      `WITH block AS (INSERT INTO import_raw_rows (import_id, first_row, last_row, sealed) VALUES ($1, $9, $10, $11))
       INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, providers, planned, outcome,
         person_id, person_wanted_at)
       SELECT $1, n.row_no, n.file, n.line, n.kind, n.external_id, n.providers::text[], 'unchanged', 'unchanged',
         p.id, p.wanted_at
       FROM unnest($2::int[], $3::int[], $4::int[], $5::person_kind[], $6::text[], $7::text[])
         WITH ORDINALITY AS n(row_no, file, line, kind, external_id, providers, place)
       CROSS JOIN LATERAL (SELECT id, kind, wanted, state, profile_hash, wanted_at FROM people WHERE kind = n.kind AND external_id = n.external_id LIMIT 1) AS p
       WHERE p.wanted AND p.state = 'synced' AND p.profile_hash = substring($8::bytea FROM 32 * n.place::int - 31 FOR 32)
         AND (p.kind = 'provider' OR n.providers::text[] = ARRAY(
           SELECT q.external_id FROM client_providers cp JOIN people q ON q.id = cp.provider_id
           WHERE cp.client_id = p.id AND q.wanted ORDER BY cp.position))
       RETURNING row_no`,
      [
        importId,
        arrayLiteral(candidates.map(({ rowNo }) => rowNo)),
        arrayLiteral(candidates.map(({ file }) => file)),
        arrayLiteral(candidates.map(({ line }) => line)),
        arrayLiteral(candidates.map(({ kind }) => kind)),
        arrayLiteral(candidates.map(({ externalId }) => externalId)),
        arrayLiteral(candidates.map(({ providers }) => arrayLiteral(providers))),
        Buffer.from(candidates.map(({ profileHash }) => profileHash).join(''), 'hex'),
        firstRow,
        lastRow,
        sealed,
      ],
    );
    return new Set(rows.map((row) => row.row_no));
  }

  /** Takes the outcome back from rows whose person changed since they were read: the plan compares them like any other. */
  async doubt(tx: PoolClient, importId: string): Promise<void> {
    const { rows } = await tx.query<{ rowNo: number; kind: PersonKind; externalId: string }>(
      `UPDATE import_rows r SET outcome = 'pending', planned = NULL, person_id = NULL, person_wanted_at = NULL
       WHERE r.import_id = $1 AND r.planned = 'unchanged' AND NOT EXISTS (
         SELECT 1 FROM people p WHERE p.id = r.person_id AND p.wanted AND p.state = 'synced' AND p.wanted_at = r.person_wanted_at)
       RETURNING row_no AS "rowNo", kind, external_id AS "externalId"`,
      [importId],
    );
    let block: CellsBlock | undefined;
    for (const { rowNo, ...key } of rows.toSorted((left, right) => left.rowNo - right.rowNo)) {
      if (!block?.has(rowNo)) block = await this.cells.around(importId, rowNo, tx);
      const profile = block?.get(rowNo)?.profile;
      if (!profile) throw new Error(`The cells of row ${rowNo} are gone before the import was planned.`);
      await tx.query(
        `UPDATE import_rows SET profile = $3, profile_hash = $4, email_fingerprint = $5
         WHERE import_id = $1 AND row_no = $2`,
        [
          importId,
          rowNo,
          this.seal.seal(key, profile),
          this.seal.hash(profile),
          this.seal.emailFingerprint(profile.email),
        ],
      );
    }
  }
}
