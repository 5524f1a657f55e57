import { setImmediate } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { STANDS_FOR } from '../../database/former-ids.js';
import { parseRaw } from '../parse/row/import-row.js';
import { isImportableId } from '../parse/row/validate-person.js';
import { StagingRepository } from '../upload/staging.repository.js';

/** Rows that leave the desired state of a client as their providers cell says. */
const NAMING = `('create-or-link', 'provider-change', 'attribute-change', 'needs-review', 'unchanged')`;

/** A row `r` that may cover several lines: the next one of its file does not begin on the next line. */
const MAY_BE_LONG = `NOT EXISTS (SELECT 1 FROM import_rows n
  WHERE n.import_id = r.import_id AND n.row_no = r.row_no + 1 AND n.file = r.file AND n.line = r.line + 1)`;

/** The people that stand for the former ids `f`. */
const SUCCESSORS = `SELECT s.external_id AS "externalId" FROM former_ids f JOIN people p ON p.id = f.person_id
  JOIN people s ON s.id = ${STANDS_FOR}`;

/** Why a provider is not deleted. */
export const PROVIDER_IN_USE = {
  code: 'provider-in-use',
  field: 'providers',
  hint: 'Clients still name this provider: give them others, then delete it.',
};

/** What a snapshot does to people whom it does not name. */
@Injectable()
export class SnapshotDeletesRepository {
  constructor(private readonly staging: StagingRepository) {}

  /**
   * Adds a row for each person to delete, behind the last. A snapshot speaks of the kinds that stand in it only; a person
   * is not missing who is named in a row that was rejected, or mentioned where a row may have been lost.
   */
  async plan(tx: PoolClient, importId: string): Promise<void> {
    const mentioned = await this.mentioned(tx, importId);
    await tx.query(
      `INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, planned)
       SELECT $1, (SELECT max(row_no) FROM import_rows WHERE import_id = $1)
           + row_number() OVER (ORDER BY p.kind DESC, p.external_id), 0, 0, p.kind, p.external_id, 'delete'
       FROM people p
       WHERE p.wanted AND p.kind IN (SELECT DISTINCT kind FROM import_rows WHERE import_id = $1)
         AND NOT EXISTS (SELECT 1 FROM unnest($2::text[]) AS mentioned(id) WHERE mentioned.id = p.external_id)
         AND NOT EXISTS (SELECT 1 FROM import_rows r
           WHERE r.import_id = $1 AND coalesce(r.kind, p.kind) = p.kind AND r.external_id = p.external_id)`,
      [importId, mentioned],
    );
  }

  /** Keeps providers whom clients will still name when the plan is done. */
  async skipReferenced(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `WITH named AS (
         SELECT unnest(providers) AS external_id FROM import_rows
         WHERE import_id = $1 AND kind = 'client' AND planned IN ${NAMING}
         UNION
         SELECT q.external_id FROM client_providers cp
         JOIN people c ON c.id = cp.client_id JOIN people q ON q.id = cp.provider_id
         WHERE c.wanted AND NOT EXISTS (SELECT 1 FROM import_rows r WHERE r.import_id = $1 AND r.kind = 'client'
           AND r.external_id = c.external_id AND (r.planned = 'delete' OR r.planned IN ${NAMING})))
       UPDATE import_rows SET outcome = 'skipped', code = $2, hint = $3, field = $4, calls_min = 0, calls_max = 0
       WHERE import_id = $1 AND kind = 'provider' AND planned = 'delete' AND outcome = 'pending'
         AND external_id IN (SELECT external_id FROM named)`,
      [importId, PROVIDER_IN_USE.code, PROVIDER_IN_USE.hint, PROVIDER_IN_USE.field],
    );
  }

  /**
   * The external ids of wanted people that stand in any cell of a rejected row, which does not say reliably whom it names,
   * or in a cell of several lines, into which a stray quote may have taken rows. A former id mentions its successor.
   */
  private async mentioned(tx: PoolClient, importId: string): Promise<string[]> {
    const { rows: successors } = await tx.query<{ externalId: string }>(
      `${SUCCESSORS} JOIN import_rows r ON r.external_id = f.external_id AND coalesce(r.kind, f.kind) = f.kind
       WHERE r.import_id = $1`,
      [importId],
    );
    const mentioned = new Set(successors.map(({ externalId }) => externalId));
    for (const [which, mentions] of [
      [`r.outcome = 'rejected'`, mentionedIds],
      [`r.outcome <> 'rejected' AND ${MAY_BE_LONG}`, idsInLongCells],
    ] as const) {
      for await (const { rowNos, block } of this.staging.blocksWith(tx, importId, which)) {
        const ids = new Set(rowNos.flatMap((rowNo) => [...mentions(block.get(rowNo)?.raw ?? '""')]));
        const { rows } = await tx.query<{ externalId: string }>(
          `SELECT external_id AS "externalId" FROM people
           WHERE kind = ANY (enum_range(NULL::person_kind)) AND external_id = ANY ($1::text[]) AND wanted
           UNION ${SUCCESSORS} WHERE f.kind = ANY (enum_range(NULL::person_kind)) AND f.external_id = ANY ($1::text[])`,
          [[...ids]],
        );
        for (const { externalId } of rows) mentioned.add(externalId);
        await setImmediate();
      }
    }
    return [...mentioned];
  }
}

/** What stands between cells in any dialect that is read, between providers, and around texts in JSON. */
const BETWEEN = /[,;|\t\r\n"]/;

/** Invisible characters, which an id may have been padded with. */
const INVISIBLE = /\p{Cf}/gu;

/**
 * Every external id that a row may name, wherever it stands: each cell whole, and each part of it that would be a cell
 * if the quotes or the delimiters were others. Of a row that can't be read nobody knows which cell is which.
 *
 * @param raw see `parse/row/import-row.ts`
 */
export function mentionedIds(raw: string): Set<string> {
  const { cells, text } = parseRaw(raw);
  return idsIn([...cells, text]);
}

/** Those that stand in cells of several lines. */
function idsInLongCells(raw: string): Set<string> {
  return idsIn(parseRaw(raw).cells.filter((cell) => /[\r\n]/.test(cell)));
}

function idsIn(texts: readonly string[]): Set<string> {
  const found = new Set<string>();
  for (const cell of texts) {
    for (const part of [cell, ...cell.split(BETWEEN)]) {
      for (const id of [part.trim(), part.replace(INVISIBLE, '').trim()]) if (isImportableId(id)) found.add(id);
    }
  }
  return found;
}
