import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import type { PersonKind } from '../../people/rules/person.js';
import { unguarded } from '../../text/csv-line.js';
import { Vault } from '../../vault/vault.js';
import { ImportsRepository } from '../model/imports.repository.js';
import type { FileKind, StoredRecord } from '../parse/row/import-row.js';
import { canonicalId } from '../parse/row/validate-person.js';
import { recordsPlace } from './row-places.js';

/** Records of one block, and their characters: one block is encrypted as a whole. */
const BLOCK_RECORDS = 1_000;
const BLOCK_CHARACTERS = 256 * 1024;

/** SQL condition: import `i` was opened before the deletion of a person was stated. @param ids parameter with all its ids */
export const IS_OPENED_BEFORE_DELETION = (kind: string, ids: string): string =>
  `i.opened_at <= coalesce((SELECT max(p.stated_at) FROM people p
    WHERE p.kind = ${kind} AND p.external_id = ANY (${ids}::text[])), clock_timestamp())`;

/** A stored block. */
interface Block {
  importId: string;
  blockNo: number;
  sealed: Buffer;
}

/** The records of CSV files whose columns are not clear yet, encrypted. */
@Injectable()
export class StoredRecords {
  constructor(
    private readonly imports: ImportsRepository,
    private readonly vault: Vault,
  ) {}

  /** Stores the records of one import, in order. Call `store` after the last one of a file. */
  writer(tx: PoolClient, importId: string) {
    let records: StoredRecord[] = [];
    let characters = 0;
    let blockNo = 0;
    const store = async (file: number) => {
      if (records.length === 0) return;
      blockNo += 1;
      const sealed = this.vault.seal(recordsPlace(importId, blockNo), JSON.stringify(records));
      const insert = 'INSERT INTO import_records (import_id, block_no, file, sealed) VALUES ($1, $2, $3, $4)';
      await tx.query(insert, [importId, blockNo, file, sealed]);
      [records, characters] = [[], 0];
    };
    return {
      add: (record: StoredRecord): void => {
        records.push(record);
        characters +=
          'cells' in record ? record.cells.reduce((sum, { length }) => sum + length, 0) : record.text.length;
      },
      storeFull: async (file: number): Promise<void> => {
        if (records.length >= BLOCK_RECORDS || characters > BLOCK_CHARACTERS) await store(file);
      },
      store,
    };
  }

  /** Reads the records of a file, block by block. */
  async *read(tx: PoolClient, importId: string, file: number): AsyncGenerator<StoredRecord[]> {
    for (let after = 0; ; ) {
      const { rows } = await tx.query<Block>(
        `SELECT import_id AS "importId", block_no AS "blockNo", sealed FROM import_records
         WHERE import_id = $1 AND file = $2 AND block_no > $3 ORDER BY block_no LIMIT 1`,
        [importId, file, after],
      );
      const [block] = rows;
      if (!block) return;
      after = block.blockNo;
      yield this.open(block);
    }
  }

  /** @param file all files if undefined */
  async delete(tx: PoolClient, importId: string, file?: number): Promise<void> {
    const ofFile = '$2::int IS NULL OR file = $2';
    await tx.query(`DELETE FROM import_records WHERE import_id = $1 AND (${ofFile})`, [importId, file ?? null]);
  }

  /**
   * Erases all records in which a cell is one of a person's ids. Those of imports that were opened after the deletion
   * stay, because they bring the person back.
   *
   * @returns how many there were
   */
  async erase(tx: Pool | PoolClient, kind: PersonKind, externalIds: readonly string[]): Promise<number> {
    const { rows } = await tx.query<
      Omit<Block, 'sealed'> & { id: string; file: number; files: Uint8Array<ArrayBuffer> }
    >(
      `SELECT i.id, i.files, b.import_id AS "importId", b.block_no AS "blockNo", b.file
       FROM import_records b JOIN imports i ON i.id = b.import_id
       WHERE ${IS_OPENED_BEFORE_DELETION('$1', '$2')} ORDER BY b.import_id, b.block_no`,
      [kind, externalIds],
    );
    const ids = new Set(externalIds.map(canonicalId));
    let erased = 0;
    for (const { importId, blockNo, file, ...record } of rows) {
      if (this.imports.filesOf(record)[file - 1]?.kind === OTHER_FILES[kind]) continue;
      const where = 'WHERE import_id = $1 AND block_no = $2';
      const found = await tx.query<Block>(`SELECT sealed FROM import_records ${where} FOR UPDATE`, [importId, blockNo]);
      const [block] = found.rows;
      if (!block) continue;
      const records = this.open({ importId, blockNo, sealed: block.sealed });
      const left = records.map((one) => withoutPerson(one, ids));
      const count = left.filter((one, at) => one !== records[at]).length;
      if (count === 0) continue;
      erased += count;
      const sealed = this.vault.seal(recordsPlace(importId, blockNo), JSON.stringify(left));
      await tx.query(`UPDATE import_records SET sealed = $3 ${where}`, [importId, blockNo, sealed]);
    }
    return erased;
  }

  private open({ importId, blockNo, sealed }: Block): StoredRecord[] {
    return JSON.parse(this.vault.open(recordsPlace(importId, blockNo), sealed)) as StoredRecord[];
  }
}

/** Kinds of files whose id column never contains people of a kind. */
const OTHER_FILES: Record<PersonKind, FileKind> = { client: 'providers', provider: 'clients' };

/**
 * Empties all other cells of a record if a cell is one of these ids. An unreadable line that contains one loses its
 * text.
 */
function withoutPerson(record: StoredRecord, ids: ReadonlySet<string>): StoredRecord {
  if (!('cells' in record)) {
    return [...ids].some((id) => record.text.includes(id)) ? { ...record, text: '' } : record;
  }
  const isId = (cell: string) => [cell, unguarded(cell)].some((text) => ids.has(canonicalId(text.trim())));
  if (record.isErased || !record.cells.some(isId)) return record;
  return { ...record, cells: record.cells.map((cell) => (isId(cell) ? cell : '')), isErased: true };
}
