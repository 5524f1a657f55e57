import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { Audit } from '../../access/audit/audit.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { messageFor } from '../../people/model/person-codes.js';
import { isExternalId } from '../../people/model/person-field-rules.js';
import { noneIfUnreadable } from '../../vault/unreadable-value.js';
import type { ImportFile } from '../model/import.js';
import { CSV_COLUMNS, parseRaw, rawRow } from '../parse/row/import-row.js';
import { type ImportRowRecord, OutcomesRepository } from '../run/outcomes.repository.js';
import { StagingRepository } from '../upload/staging.repository.js';
import type { ImportRowsQuery } from './imports.dto.js';
import { ImportsService } from './imports.service.js';
import { type RejectedLayout, type RejectedLine, rejectedCsv, rejectedLayout } from './rejected-csv.js';

/** Rejected rows that are read at once. */
const PAGE = 1_000;

/** A row as it is shown. */
export type ImportRowView = Omit<ImportRowRecord, 'rowNo' | 'file' | 'providers'> & { file: string };

/** The rows of an import: lists, and the file of rejected ones. */
@Injectable()
export class ImportRowsService {
  constructor(
    private readonly imports: ImportsService,
    private readonly outcomes: OutcomesRepository,
    private readonly staging: StagingRepository,
    private readonly audit: Audit,
  ) {}

  /** One page of rows in the order of the files. @throws {Problem} 404 */
  async list(id: string, query: ImportRowsQuery): Promise<Page<ImportRowView>> {
    const files = await this.imports.files(id);
    const [after] = decodeCursor<[number]>(query.cursor, 'number') ?? [0];
    const rows = await this.outcomes.rows(id, query, query.limit + 1, after);
    return pageOf(
      rows,
      query.limit,
      (row) => [row.rowNo],
      (row) => {
        if (row.kind) this.audit.about(row.kind, row.externalId);
        return showRow(row, files);
      },
    );
  }

  /** The rejected rows with their original columns, line, code and hint, as CSV. @throws {Problem} 404 */
  async rejectedCsv(id: string): Promise<Readable> {
    const files = await this.imports.files(id);
    const rejects = await this.outcomes.filesWithRejects(id);
    const layout = rejectedLayout(
      rejects.map(({ file, kinds }) => ({ file, kinds, columns: files[file - 1]?.columns ?? CSV_COLUMNS })),
    );
    return Readable.from(rejectedCsv(layout.columns, this.rejected(id, layout)), { objectMode: false });
  }

  private async *rejected(id: string, layout: RejectedLayout): AsyncGenerator<RejectedLine> {
    let after = 0;
    let block: Awaited<ReturnType<StagingRepository['blockOf']>>;
    for (;;) {
      const page = await this.outcomes.rows(id, { outcome: 'rejected' }, PAGE, after);
      for (const row of page) {
        if (!block?.has(row.rowNo)) block = await this.staging.blockOf(id, row.rowNo).catch(noneIfUnreadable);
        const raw = block?.get(row.rowNo)?.raw ?? rawRow([]); // no longer kept, or unreadable
        const { cells, text } = parseRaw(raw);
        yield {
          raw: text === '' ? rawRow(layout.arrange(row.file, row.kind, cells)) : raw,
          line: row.line,
          code: row.code ?? '',
          hint: row.hint ?? '',
          providers: row.providers.filter(isExternalId), // not the tokens of unknown ones
        };
      }
      const last = page.at(-1);
      if (!last || page.length < PAGE) return;
      after = last.rowNo;
    }
  }
}

/** A row that came to nothing has a hint: its own, or what the code of its person means. */
function showRow({ rowNo: _, file, providers: __, ...row }: ImportRowRecord, files: ImportFile[]): ImportRowView {
  const hint = row.hint ?? (row.code === null ? null : messageFor(row.code));
  return { file: files[file - 1]?.name ?? '', ...row, hint };
}
