import { Injectable } from '@nestjs/common';
import { MissingDataKey, type SealedPlace, Vault } from '../../vault/vault.js';

/** A file of an import. Its name and its header are the sender's words and may hold personal data. */
export interface ImportFile {
  name: string;
  /** The header of a CSV file. */
  columns?: string[];
  /** Those of the header from which nothing is read. */
  ignored?: string[];
}

/** Columns of a file from which nothing is read: often a name that was misspelt. */
export interface IgnoredColumns {
  file: string;
  columns: string[];
}

/** Seals what an import's files are called. Rows name their file by its ordinal, from 1; 0 is none. */
@Injectable()
export class ImportFiles {
  constructor(private readonly vault: Vault) {}

  seal(importId: string, files: readonly ImportFile[]): Buffer {
    return this.vault.seal(filesOf(importId), JSON.stringify(files));
  }

  /** @returns none while the import is being read */
  open({ id, files }: { id: string; files: Buffer | null }): ImportFile[] {
    return files ? (JSON.parse(this.vault.open(filesOf(id), files)) as ImportFile[]) : [];
  }

  /** @returns none, too, while their key is missing, which health reports */
  ignoredColumns(record: { id: string; files: Buffer | null }): IgnoredColumns[] {
    try {
      return this.open(record).flatMap(({ name, ignored = [] }) =>
        ignored.length > 0 ? [{ file: name, columns: ignored }] : [],
      );
    } catch (error) {
      if (error instanceof MissingDataKey) return [];
      throw error;
    }
  }
}

function filesOf(importId: string): SealedPlace {
  return { table: 'imports', column: 'files', row: importId };
}
