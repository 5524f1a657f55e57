import type { PersonKind } from '../../../people/rules/person.js';
import { unguarded } from '../../../text/csv-line.js';
import { isPlaceholder } from '../row/email-text.js';
import type { CsvOptions, Field, FileKind, ReadEvent, ReadRow, RowCells, StoredRecord } from '../row/import-row.js';
import { type Rejection, rejection } from '../row/rejection.js';
import {
  candidateOf,
  idFault,
  isLinkOnly,
  personKind,
  providerIds,
  rowOf,
  UNKNOWN_KIND,
  validatePerson,
} from '../row/validate-person.js';
import { isBlank, isOwnHeader, REJECTED_COLUMNS, withoutPadding } from './columns.js';
import { brokenLine } from './csv-records.js';
import { isGone } from './gone.js';
import type { ColumnMap } from './mapping.js';

const TOTAL = /^(?:(?:grand )?totals?|subtotals?):?$/i;

/** Makes the rows of a CSV file whose mapping is clear. */
export class CsvRows {
  /** Cells that a row must have. Unnamed columns at the end may be missing. */
  private readonly cellsMin: number;
  /** `both` if each row says its own. */
  private readonly kind: FileKind;
  private readonly isGuarded: boolean;
  /** The columns of all fields except `email`, which may have several. */
  private readonly columns: [Field, number][];

  constructor(
    private readonly header: readonly string[],
    private readonly map: ColumnMap,
    private readonly options: CsvOptions,
  ) {
    this.cellsMin = withoutPadding(header).length;
    this.isGuarded = isOwnHeader(header);
    this.columns = Object.entries(map.places) as [Field, number][];
    this.kind = map.places.kind === undefined ? options.kind : 'both';
  }

  /** @returns nothing for a line with totals */
  *events(record: StoredRecord): Generator<ReadEvent> {
    const { line } = record;
    if (!('cells' in record)) {
      const fault = brokenLine(record, this.options.limits.row, this.cellsMin);
      return yield rowOf(line, fault, { kind: this.kindOf({}) });
    }
    const cells = this.isGuarded ? record.cells.map(unguarded) : record.cells;
    if (record.isErased) {
      const texts = this.texts(cells);
      return yield rowOf(line, rejection('erased'), { kind: this.kindOf(texts), externalId: texts.externalId });
    }
    const texts = this.options.whole ? record.cells.filter((cell) => /[\r\n]/.test(cell)) : [];
    if (texts.length > 0) yield { type: 'mention', texts };
    if (!this.isTotal(cells)) yield this.row(line, cells);
  }

  private row(line: number, cells: readonly string[]): ReadRow {
    const { mapping, places, statuses } = this.map;
    const texts = this.texts(cells);
    const { externalId = '' } = texts;
    const kind = this.kindOf(texts);
    const misfit = this.misfit(cells);
    // With another number of cells, they may be in the wrong columns.
    const known = { kind, externalId: misfit?.code === 'cell-count' ? undefined : externalId, cells: texts };
    if (misfit || !kind) return rowOf(line, misfit ?? UNKNOWN_KIND, known);
    const { isRejectedCsv } = mapping;
    if (isRejectedCsv && cells[REJECTED_COLUMNS.indexOf('code')]?.trim()) {
      return rowOf(line, rejection('not-corrected', { field: 'code' }), known);
    }
    if (statuses.some((status) => isGone(status, cells[status.place] ?? ''))) {
      const fault = idFault(externalId);
      return fault ? rowOf(line, fault, known) : { type: 'row', line, is: 'gone', kind, externalId };
    }
    // The rejected row of a FHIR client has no providers, because other resources name them.
    const namesProviders = places.providers !== undefined && !(isRejectedCsv && !texts.providers);
    const isLinkFile = places.firstName === undefined && places.lastName === undefined;
    const isPartial = isLinkFile || (isRejectedCsv && isLinkOnly(texts)) || undefined;
    const candidate = candidateOf(texts, kind, namesProviders ? providerIds(texts) : undefined);
    const person = validatePerson(candidate, isPartial);
    if ('code' in person) return rowOf(line, person, known);
    return { type: 'row', line, is: 'person', person, isPartial };
  }

  /** The texts of the mapped columns that are not empty. */
  private texts(cells: readonly string[]): RowCells {
    const texts: RowCells = {};
    for (const [field, place] of this.columns) {
      const text = cells[place]?.trim();
      if (text) texts[field] = text;
    }
    for (const place of this.map.emails[this.kindOf(texts) ?? 'client']) {
      const text = cells[place]?.trim();
      if (!text || isPlaceholder(text)) continue;
      texts.email = text;
      break;
    }
    return texts;
  }

  private kindOf(texts: RowCells): PersonKind | undefined {
    return personKind(this.kind, texts.kind);
  }

  /** A row of another shape than the header's, or with a cell that is too large. Surplus empty cells are harmless. */
  private misfit(cells: readonly string[]): Rejection | undefined {
    const { mapping, emails } = this.map;
    // Spreadsheets drop the empty cells at the end.
    const isShort = !mapping.isRejectedCsv && cells.length < this.cellsMin;
    if (isShort || (cells.length > this.header.length && !isBlank(cells.slice(this.header.length)))) {
      return rejection('cell-count', { found: cells.length, expected: String(this.cellsMin) });
    }
    const limit = this.options.limits.cell;
    const isLarge = (place: number) => (cells[place]?.length ?? 0) > limit;
    const [field] = this.columns.find(([, place]) => isLarge(place)) ?? [];
    if (field) return rejection('cell-too-large', { field, limit });
    return emails.client.some(isLarge) ? rejection('cell-too-large', { field: 'email', limit }) : undefined;
  }

  private isTotal(cells: readonly string[]): boolean {
    const first = cells.findIndex((cell) => cell.trim() !== '');
    if (!TOTAL.test(cells[first]?.trim() ?? '')) return false;
    const { firstName = first, lastName = first } = this.map.places;
    return [firstName, lastName].every((place) => place === first || !/\p{L}/u.test(cells[place] ?? ''));
  }
}
