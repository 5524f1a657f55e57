import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { ClientData, type DataSubject, ERASED } from '../../people/store/client-data.js';
import { openIfReadable } from '../../vault/unreadable-value.js';
import { ImportsRepository } from '../model/imports.repository.js';
import { IS_NAMED_BY_EMAIL } from '../model/named-rows.js';
import type { RowCells } from '../parse/row/import-row.js';
import type { ImportRowRecord } from '../run/import-counts.repository.js';
import { ImportErasure } from '../run/import-erasure.js';
import { RowCellsRepository } from './row-cells.repository.js';

/** Rows in one read. */
const PAGE = 200;

interface MentionRow extends Pick<ImportRowRecord, 'rowNo' | 'file' | 'line' | 'outcome' | 'code' | 'field' | 'hint'> {
  import: string;
  createdAt: Date;
  files: Uint8Array<ArrayBuffer>;
}

/** A row of an import that names a person, and what is stored of its content. */
interface ImportMention extends Omit<MentionRow, 'rowNo' | 'file' | 'files'> {
  file: string;
  cells: RowCells | null;
}

/** Reads all rows, because this is rare, and every import would have to maintain an index for it. */
const MENTIONS = `
  SELECT r.import_id AS import, i.created_at AS "createdAt", i.files, r.row_no AS "rowNo", r.file, r.line, r.outcome,
    r.code, r.field, r.hint
  FROM import_rows r JOIN imports i ON i.id = r.import_id
  WHERE (r.external_id = ANY ($2::text[]) OR ${IS_NAMED_BY_EMAIL('$5')}) AND (r.kind = $1 OR r.kind IS NULL)
    AND (r.import_id, r.row_no) > ($3, $4)
  ORDER BY r.import_id, r.row_no LIMIT ${PAGE}`;

/** The rows of imports that named a person. */
@Injectable()
export class ImportMentions implements OnModuleInit {
  constructor(
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly cells: RowCellsRepository,
    private readonly erasure: ImportErasure,
    private readonly data: ClientData,
  ) {}

  onModuleInit(): void {
    this.data.register({
      ...{ section: 'importRows', isList: true },
      tables: {
        imports: { files: 'names and columns of files', guards: 'numbers', totals: 'numbers' },
        import_rows: {
          ...{ profile: ERASED, cells: ERASED, profile_hash: ERASED, email_fingerprint: ERASED },
          replaced: 'a time, an id and codes',
        },
      },
      read: async (client) => this.of(client),
      ...{ erase: (tx, person) => this.erasure.erase(tx, person), erased: 'rows of imports', ofUnknown: true },
    });
  }

  /** The rows of all imports that named a person. */
  private async *of({ kind, externalIds, emails }: DataSubject): AsyncGenerator<ImportMention> {
    let after = ['00000000-0000-0000-0000-000000000000', 0] as [string, number];
    let rows: MentionRow[];
    do {
      ({ rows } = await this.database.pool.query<MentionRow>(MENTIONS, [kind, externalIds, ...after, emails]));
      for (const row of rows) {
        yield await this.show(row);
        after = [row.import, row.rowNo];
      }
    } while (rows.length === PAGE);
  }

  private async show({ rowNo, file, files, ...shown }: MentionRow): Promise<ImportMention> {
    const names = openIfReadable(() => this.imports.filesOf({ id: shown.import, files }));
    const cells = (await this.cells.of(shown.import, [rowNo])).get(rowNo) ?? null;
    return { ...shown, file: names?.[file - 1]?.name ?? '', cells };
  }
}
