import type { PersonKind } from '../../people/model/person.js';
import { isExternalId } from '../../people/model/person-field-rules.js';
import { readHeader } from '../parse/csv/csv-header.js';
import { guardFormula, REJECTED_COLUMNS, rowCheck } from '../parse/csv/rejected-cells.js';
import { CSV_COLUMNS, FHIR_COLUMNS, type ImportKind, parseRaw, rawRow } from '../parse/row/import-row.js';
import type { ImportRowCells } from './imports.dto.js';

/** A file of an import that has rejected rows. */
interface FileWithRejects {
  /** Its ordinal in the import, from 1. */
  file: number;
  /** Its own, in their order. */
  columns: readonly string[];
  kinds: readonly (PersonKind | null)[];
}

/** The columns of a file of rejected rows, and how a row's own cells come under them; surplus ones stay behind them. */
export interface RejectedLayout {
  columns: readonly string[];
  arrange(file: number, kind: PersonKind | null, cells: readonly string[]): string[];
}

/**
 * One file's rejected rows keep its columns. Rows of files with different columns, or of both kinds of people, come under
 * the columns of the documentation with a column `kind`, and then each file's other columns: text/csv of the kind `fhir`.
 */
export function rejectedLayout(files: readonly FileWithRejects[]): RejectedLayout {
  const [first] = files;
  const kinds = new Set(files.flatMap(({ kinds }) => kinds));
  const isOne = files.every(({ columns }) => columns.join('\0') === first?.columns.join('\0'));
  if (!first || (isOne && (kinds.size === 1 || first.columns.includes('kind')))) {
    return { columns: first?.columns ?? FHIR_COLUMNS, arrange: (_file, _kind, cells) => [...cells] };
  }
  const places = new Map(files.map((file) => [file.file, placesOf(file)]));
  const columns = [...new Set([...FHIR_COLUMNS, ...[...places.values()].flatMap((of) => [...of.keys()])])];
  return {
    columns,
    arrange: (file, kind, cells) => {
      const under = columns.map((column) => {
        const place = places.get(file)?.get(column);
        return place === undefined ? (column === 'kind' && kind) || '' : (cells[place] ?? '');
      });
      return [...under, ...cells.slice(files.find((one) => one.file === file)?.columns.length ?? 0)];
    },
  };
}

/** Where each column of the layout stands in a file: known ones by their documented name, others by their own. */
function placesOf({ columns, kinds }: FileWithRejects): Map<string, number> {
  const kind: ImportKind = columns.includes('kind') ? 'fhir' : kinds.includes('provider') ? 'providers' : 'clients';
  const known = Object.entries(readHeader(columns, kind, 1).at) as [string, number][];
  const taken = new Set(known.map(([, place]) => place));
  const others = columns.map((name, place) => [name, place] as const).filter(([, place]) => !taken.has(place));
  return new Map([...others, ...known]);
}

/**
 * The cells of a rejected row under their documented names.
 *
 * @param raw see `parse/row/import-row.ts`; undefined: it is no longer kept
 * @returns null where it has none
 */
export function namedCells(
  columns: readonly string[],
  { kind, providers }: { kind: PersonKind | null; providers: readonly string[] },
  raw: string | undefined,
): ImportRowCells | null {
  const { cells } = parseRaw(raw ?? rawRow([]));
  if (cells.length === 0) return null;
  const places = placesOf({ file: 1, columns, kinds: [kind] });
  const cell = (column: string) => cells[places.get(column) ?? -1] ?? '';
  const [externalId, email, firstName, lastName, named] = CSV_COLUMNS.map(cell) as [
    string,
    string,
    string,
    string,
    string,
  ];
  return { externalId, email, firstName, lastName, providers: named || providers.filter(isExternalId).join('|') };
}

/** A rejected row as it was read (`raw`, see `parse/row/import-row.ts`), and why it was rejected. */
export interface RejectedLine {
  raw: string;
  line: number;
  code: string;
  hint: string;
  /** External ids for an empty `providers` cell: a FHIR client's, which other resources named. */
  providers?: readonly string[];
}

/** A byte-order mark: without it Excel takes UTF-8 for the local code page. */
const BYTE_ORDER_MARK = '\ufeff';

function quoted(cell: string): string {
  return /[",\r\n;\t]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

function csvLine(cells: readonly string[]): string {
  return `${cells.map((cell) => quoted(guardFormula(cell))).join(',')}\r\n`;
}

/**
 * The file's own cells at their full width, then the added ones. Cells beyond that width, and the text of a row that has
 * no cells, stand behind those: nothing is lost, and left there they are refused again.
 */
function linesCells({ raw, line, code, hint, providers = [] }: RejectedLine, columns: readonly string[]): string[] {
  const { cells, text } = parseRaw(raw);
  const own = columns.map((column, index) => {
    const cell = cells[index] ?? '';
    return cell === '' && column === 'providers' ? providers.join('|') : cell;
  });
  const beyond = text === '' ? cells.slice(columns.length) : [text];
  return [...own, String(line), code, hint, rowCheck([...own, ...beyond]), ...beyond];
}

/**
 * The file of rejected rows (RFC 4180, UTF-8 with a byte-order mark, CRLF): the original columns, then line, code, hint
 * and a check of the row. Cells that begin like formulas are guarded, so that it is safe to open in a spreadsheet;
 * corrected, it can be imported as it is, since the reader knows it by its last columns and takes the guards off again.
 * A row that comes back as it was is known by its check.
 * @param columns of the file that the rows come from (`FileColumns`)
 * @param pages of rows; each is one piece of the text
 */
export async function* rejectedCsv(
  columns: readonly string[],
  pages: AsyncIterable<RejectedLine[]> | Iterable<RejectedLine[]>,
): AsyncGenerator<string> {
  yield BYTE_ORDER_MARK + csvLine([...columns, ...REJECTED_COLUMNS]);
  for await (const page of pages) yield page.map((row) => csvLine(linesCells(row, columns))).join('');
}
