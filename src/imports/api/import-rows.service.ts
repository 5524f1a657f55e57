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
import type { ImportRowsQuery, ImportRowView } from './imports.dto.js';
import { ImportsService } from './imports.service.js';
import { namedCells, type RejectedLayout, type RejectedLine, rejectedCsv, rejectedLayout } from './rejected-csv.js';

/** Rejected rows that are read at once. */
const PAGE = 1_000;

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
    const raws = new Map<number, string | undefined>();
    const rejected = query.cells ? rows.filter(({ outcome }) => outcome === 'rejected') : [];
    for await (const { row, raw } of this.withRaw(id, rejected)) raws.set(row.rowNo, raw);
    return pageOf(
      rows,
      query.limit,
      (row) => [row.rowNo],
      (row) => {
        if (row.kind) this.audit.about(row.kind, row.externalId);
        const shown = showRow(row, files);
        if (!raws.has(row.rowNo)) return shown;
        const columns = files[row.file - 1]?.columns ?? CSV_COLUMNS;
        return { ...shown, cells: namedCells(columns, row, raws.get(row.rowNo)) };
      },
    );
  }

  /** The rejected rows with their original columns, line, code and hint, as CSV. @throws {Problem} 404 */
  async rejectedCsv(id: string): Promise<AsyncIterable<string>> {
    const files = await this.imports.files(id);
    const rejects = await this.outcomes.filesWithRejects(id);
    const layout = rejectedLayout(
      rejects.map(({ file, kinds }) => ({ file, kinds, columns: files[file - 1]?.columns ?? CSV_COLUMNS })),
    );
    return rejectedCsv(layout.columns, this.rejected(id, layout));
  }

  private async *rejected(id: string, layout: RejectedLayout): AsyncGenerator<RejectedLine[]> {
    let after = 0;
    for (;;) {
      const page = await this.outcomes.rows(id, { outcome: 'rejected' }, PAGE, after);
      const lines: RejectedLine[] = [];
      for await (const { row, raw = rawRow([]) } of this.withRaw(id, page)) {
        const { cells, text } = parseRaw(raw);
        lines.push({
          raw: text === '' ? rawRow(layout.arrange(row.file, row.kind, cells)) : raw,
          line: row.line,
          code: row.code ?? '',
          hint: row.hint ?? '',
          providers: row.providers.filter(isExternalId), // not the tokens of unknown ones
        });
      }
      yield lines;
      const last = page.at(-1);
      if (!last || page.length < PAGE) return;
      after = last.rowNo;
    }
  }

  /** Rejected rows, each with what it was read as; undefined: it is no longer kept, or unreadable. */
  private async *withRaw(id: string, rows: readonly ImportRowRecord[]) {
    let block: Awaited<ReturnType<StagingRepository['blockOf']>>;
    for (const row of rows) {
      if (!block?.has(row.rowNo)) block = await this.staging.blockOf(id, row.rowNo).catch(noneIfUnreadable);
      yield { row, raw: block?.get(row.rowNo)?.raw };
    }
  }
}

/** A row that came to nothing has a hint: its own, or what the code of its person means. */
function showRow({ rowNo: _, file, providers: __, ...row }: ImportRowRecord, files: ImportFile[]): ImportRowView {
  const hint = row.hint ?? (row.code === null ? null : messageFor(row.code));
  return { file: files[file - 1]?.name ?? '', ...row, hint };
}
