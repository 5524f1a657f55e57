import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import type { Subject } from '../../audit/audit-record.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { messageFor } from '../../people/rules/person-codes.js';
import type { ImportFile } from '../model/import.js';
import { FIELDS, type RowCells } from '../parse/row/import-row.js';
import { ImportCounts, type ImportRowRecord } from '../run/import-counts.repository.js';
import { noProviderHint } from '../upload/staging-writer.js';
import type { ImportRowCells, ImportRowsQuery, ImportRowView } from './imports.dto.js';
import { ImportsService } from './imports.service.js';
import { type RejectedRow, rejectedCsv } from './rejected-csv.js';
import { RowCellsRepository } from './row-cells.repository.js';

/** Rejected rows per statement. */
const PAGE = 1_000;

/** The rows of an import, as lists and as CSV. */
@Injectable()
export class ImportRowsService {
  constructor(
    private readonly imports: ImportsService,
    private readonly counts: ImportCounts,
    private readonly cells: RowCellsRepository,
    private readonly audit: Audit,
  ) {}

  /** One page of rows, in the order of the files or the newest outcomes first. @throws {Problem} 404 */
  async list(id: string, query: ImportRowsQuery): Promise<Page<ImportRowView>> {
    const files = await this.imports.files(id);
    const isNewest = query.order === 'newest';
    const rows = isNewest ? await this.newest(id, query) : await this.inOrder(id, query);
    const rejected = query.cells ? rows.filter(({ outcome }) => outcome === 'rejected') : [];
    const cells = await this.cells.of(
      id,
      rejected.map(({ rowNo }) => rowNo),
    );
    return pageOf(
      rows,
      query.limit,
      (row) => (isNewest ? [(row.settledAt as Date).toISOString(), row.rowNo] : [row.rowNo]),
      (row) => {
        if (row.kind) this.audit.about(row.kind, row.externalId);
        const shown = showRow(row, files);
        return rejected.includes(row) ? { ...shown, cells: showCells(cells.get(row.rowNo)) } : shown;
      },
    );
  }

  private inOrder(id: string, query: ImportRowsQuery): Promise<ImportRowRecord[]> {
    const [after] = decodeCursor<[number]>(query.cursor, 'number') ?? [0];
    return this.counts.rows(id, query, query.limit + 1, after);
  }

  private newest(id: string, query: ImportRowsQuery): Promise<ImportRowRecord[]> {
    const after = decodeCursor<[string, number]>(query.cursor, 'time', 'number');
    const place = after && { settledAt: after[0], rowNo: after[1] };
    return this.counts.newestRows(id, query, query.limit + 1, place);
  }

  /** The rejected rows with line, code and hint, as CSV. @throws {Problem} 404 */
  async rejectedCsv(id: string): Promise<AsyncIterable<string>> {
    const pages = this.rejected(id, await this.imports.files(id));
    return rejectedCsv(await this.audit.parts(pages, (rows) => rows.map(({ subject }) => subject)));
  }

  private async *rejected(id: string, files: ImportFile[]): AsyncGenerator<(RejectedRow & { subject: Subject })[]> {
    for (let after = 0; ; ) {
      const rows = await this.counts.rows(id, { outcome: 'rejected' }, PAGE, after);
      const cells = await this.cells.of(
        id,
        rows.map(({ rowNo }) => rowNo),
      );
      yield rows.map((row) => {
        const { file, line, code, hint } = showRow(row, files);
        const named = { ...(row.kind && { kind: row.kind }), ...(row.externalId && { externalId: row.externalId }) };
        const subject: Subject = [row.kind ?? 'client', row.kind && row.externalId];
        return { cells: cells.get(row.rowNo) ?? named, file, line, code: code ?? '', hint: hint ?? '', subject };
      });
      const last = rows.at(-1);
      if (!last || rows.length < PAGE) return;
      after = last.rowNo;
    }
  }
}

function showRow({ rowNo, file, settledAt: _, ...row }: ImportRowRecord, files: readonly ImportFile[]): ImportRowView {
  const of = files[file - 1];
  return { row: rowNo, file: of?.name ?? '', ...row, hint: hintOf(row, of) };
}

/** A row without its own hint gets the meaning of its person's code. */
function hintOf({ code, hint }: Pick<ImportRowRecord, 'code' | 'hint'>, file: ImportFile | undefined): string | null {
  if (code === 'no-provider' && file) return noProviderHint(file);
  return hint ?? (code === null ? null : messageFor(code));
}

function showCells(cells: RowCells | undefined): ImportRowCells | null {
  if (!cells || Object.keys(cells).length === 0) return null;
  return Object.fromEntries(FIELDS.map((field) => [field, cells[field] ?? ''])) as unknown as ImportRowCells;
}
