import type { PersonKind } from '../../../people/model/person.js';
import { isPlaceholder } from '../row/email-text.js';
import {
  FIELDS,
  type ReadEvent,
  type ReadOptions,
  type ReadRow,
  type RowCells,
  type StoredRecord,
} from '../row/import-row.js';
import { type Rejection, rejection } from '../row/rejection.js';
import {
  candidateOf,
  canonicalId,
  externalIdFault,
  isLinkOnly,
  rowOf,
  validatePerson,
} from '../row/validate-person.js';
import { CELLS_MAX } from './csv-records.js';
import { isGone } from './gone.js';
import type { ColumnMap } from './mapping.js';
import { isOwnHeader, unguardFormula, withoutPadding } from './rejected-cells.js';

export type CsvOptions = Pick<ReadOptions, 'kind' | 'columns' | 'whole' | 'isStored'> & {
  limits: { row: number; cell: number };
};

const TOTAL = /^(?:(?:grand )?totals?|subtotals?):?$/i;

export function isBlank(cells: readonly string[]): boolean {
  return cells.every((cell) => cell.trim() === '');
}

/** Makes the rows of a CSV file whose mapping is clear. */
export class CsvRows {
  /** Cells that a row must have. Unnamed columns at the end may be missing. */
  private readonly cellsMin: number;
  private readonly kind: PersonKind | undefined;
  /** Cells that begin like a formula have a quote before them. */
  private readonly isGuarded: boolean;

  constructor(
    private readonly header: readonly string[],
    private readonly map: ColumnMap,
    private readonly options: CsvOptions,
  ) {
    this.cellsMin = withoutPadding(header).length;
    this.isGuarded = isOwnHeader(header);
    const kinds: Partial<Record<string, PersonKind>> = { providers: 'provider', clients: 'client' };
    this.kind = map.places.kind === undefined ? kinds[options.kind] : undefined;
  }

  /** @returns nothing for a line with totals */
  *events(record: StoredRecord): Generator<ReadEvent> {
    if (!('cells' in record)) {
      yield rowOf(record.line, brokenLine(record.broken, this.options.limits.row, this.cellsMin), this.kindOf({}));
      return;
    }
    if (record.isErased) {
      const { kind, externalId } = this.texts(record.cells);
      yield rowOf(record.line, rejection('erased'), { ...this.kindOf({ kind }), externalId });
      return;
    }
    if (this.options.whole) {
      const texts = record.cells.filter((cell) => /[\r\n]/.test(cell));
      if (texts.length > 0) yield { type: 'mention', texts };
    }
    const cells = this.isGuarded ? record.cells.map(unguardFormula) : record.cells;
    if (!this.isTotal(cells)) yield this.row(record.line, cells);
  }

  private row(line: number, cells: readonly string[]): ReadRow {
    const texts = this.texts(cells);
    const { kind } = this.kindOf(texts);
    const known = { kind, externalId: texts.externalId, cells: texts };
    const misfit = this.misfit(cells);
    // The cells of such a row may be in the wrong columns.
    if (misfit) return rowOf(line, misfit, misfit.code === 'cell-count' ? { kind, cells: texts } : known);
    if (!kind) return rowOf(line, rejection('wrong-type', { field: 'kind', expected: 'provider or client' }), known);
    if (this.map.code !== undefined && cells[this.map.code]?.trim()) {
      return rowOf(line, rejection('not-corrected', { field: 'code' }), known);
    }
    if (!this.map.statuses.some((status) => isGone(status, cells[status.place] ?? ''))) {
      // The rejected row of a FHIR client has no providers, because other resources name them.
      const { places, mapping } = this.map;
      const namesProviders = places.providers !== undefined && !(mapping.isRejectedCsv && !texts.providers);
      const candidate = candidateOf(texts, kind, namesProviders);
      const isPartial = this.map.isLinkFile || (mapping.isRejectedCsv && isLinkOnly(texts));
      const row = rowOf(line, validatePerson(candidate, isPartial), known);
      return isPartial && row.is === 'person' ? { ...row, isPartial } : row;
    }
    const { externalId = '' } = texts;
    const fault = externalIdFault(externalId);
    return fault ? rowOf(line, fault, known) : { type: 'row', line, is: 'gone', kind, externalId };
  }

  /** The texts of the mapped columns that are not empty. */
  private texts(cells: readonly string[]): RowCells {
    const text = (place: number | undefined) => (place === undefined ? '' : (cells[place] ?? '').trim());
    const kind = this.kind ?? personKind(text(this.map.places.kind)) ?? 'client';
    const emails = this.map.emails[kind].map(text);
    const email = emails.find((each) => each !== '' && !isPlaceholder(each)) ?? '';
    const entries = FIELDS.map((field) => {
      if (field === 'email') return [field, email] as const;
      const value = text(this.map.places[field]);
      return [field, field === 'externalId' || field === 'providers' ? canonicalId(value) : value] as const;
    });
    return Object.fromEntries(entries.filter(([, value]) => value !== ''));
  }

  private kindOf(texts: RowCells): { kind?: PersonKind } {
    const kind = this.kind ?? personKind(texts.kind ?? '');
    return kind ? { kind } : {};
  }

  /** A row of another shape than the header's, or with a cell that is too large. Surplus empty cells are harmless. */
  private misfit(cells: readonly string[]): Rejection | undefined {
    const { code, places, emails } = this.map;
    // Spreadsheets drop the empty cells at the end.
    const isShort = code === undefined && cells.length < this.cellsMin;
    if (isShort || !isBlank(cells.slice(this.header.length))) {
      return rejection('cell-count', { found: cells.length, expected: String(this.cellsMin) });
    }
    const limit = this.options.limits.cell;
    const read = [...Object.entries(places), ...emails.client.map((place) => ['email', place] as const)];
    const large = read.find(([, place]) => (cells[place]?.length ?? 0) > limit);
    return large && rejection('cell-too-large', { field: large[0], limit });
  }

  private isTotal(cells: readonly string[]): boolean {
    const first = cells.findIndex((cell) => cell.trim() !== '');
    if (!TOTAL.test(cells[first]?.trim() ?? '')) return false;
    const { firstName, lastName } = this.map.places;
    return [firstName, lastName].every(
      (place) => place === undefined || place === first || !/\p{L}/u.test(cells[place] ?? ''),
    );
  }
}

function personKind(text: string): PersonKind | undefined {
  const kind = text.toLowerCase();
  return kind === 'provider' || kind === 'client' ? kind : undefined;
}

/** The rejection of a line that is not a record. */
export function brokenLine(broken: 'bad-quote' | 'row-too-large' | 'cell-count', limit: number, cells = 0): Rejection {
  return rejection(broken, { limit, found: CELLS_MAX + 1, expected: String(cells) });
}
