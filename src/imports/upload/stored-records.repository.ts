import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Vault } from '../../vault/vault.js';
import type { StoredRecord } from '../parse/row/import-row.js';
import { recordsPlace } from './row-places.js';

/** Records of one block, and their characters: one block is encrypted as a whole. */
const BLOCK_RECORDS = 1_000;
const BLOCK_CHARACTERS = 256 * 1024;

/** A stored block. */
interface Block {
  importId: string;
  blockNo: number;
  sealed: Buffer;
}

/** The records of CSV files whose columns are not clear yet, encrypted. */
@Injectable()
export class StoredRecords {
  constructor(private readonly vault: Vault) {}

  /** Stores the records of one import, in order. Call `end` after the last one. */
  writer(tx: PoolClient, importId: string) {
    let records: StoredRecord[] = [];
    let characters = 0;
    let blockNo = 0;
    const flush = async (file: number) => {
      if (records.length === 0) return;
      blockNo += 1;
      const sealed = this.vault.seal(recordsPlace(importId, blockNo), JSON.stringify(records));
      const insert = 'INSERT INTO import_records (import_id, block_no, file, sealed) VALUES ($1, $2, $3, $4)';
      await tx.query(insert, [importId, blockNo, file, sealed]);
      [records, characters] = [[], 0];
    };
    return {
      add: async (file: number, record: StoredRecord): Promise<void> => {
        records.push(record);
        characters +=
          'cells' in record ? record.cells.reduce((sum, { length }) => sum + length, 0) : record.text.length;
        if (records.length === BLOCK_RECORDS || characters > BLOCK_CHARACTERS) await flush(file);
      },
      end: flush,
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

  /** Removes all records that contain one of these ids in a cell. @returns how many there were */
  async erase(tx: Pool | PoolClient, externalIds: readonly string[]): Promise<number> {
    const { rows } = await tx.query<Omit<Block, 'sealed'>>(
      'SELECT import_id AS "importId", block_no AS "blockNo" FROM import_records ORDER BY import_id, block_no',
    );
    const ids = new Set(externalIds);
    let erased = 0;
    for (const { importId, blockNo } of rows) {
      const where = 'WHERE import_id = $1 AND block_no = $2';
      const found = await tx.query<Block>(`SELECT sealed FROM import_records ${where} FOR UPDATE`, [importId, blockNo]);
      const [block] = found.rows;
      if (!block) continue;
      const records = this.open({ importId, blockNo, sealed: block.sealed });
      const kept = records.filter((record) => !namesOne(record, ids));
      if (kept.length === records.length) continue;
      erased += records.length - kept.length;
      const sealed = this.vault.seal(recordsPlace(importId, blockNo), JSON.stringify(kept));
      await tx.query(`UPDATE import_records SET sealed = $3 ${where}`, [importId, blockNo, sealed]);
    }
    return erased;
  }

  private open({ importId, blockNo, sealed }: Block): StoredRecord[] {
    return JSON.parse(this.vault.open(recordsPlace(importId, blockNo), sealed)) as StoredRecord[];
  }
}

/** Whether one of the cells is one of these ids, or, in a line that is not readable, whether its text contains one. */
function namesOne(record: StoredRecord, ids: ReadonlySet<string>): boolean {
  if ('cells' in record) return record.cells.some((cell) => ids.has(cell.trim()));
  return [...ids].some((id) => record.text.includes(id));
}
