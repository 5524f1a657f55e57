import type { PersonKind } from '../../people/model/person.js';
import { readHeader } from '../parse/csv/csv-header.js';
import { FHIR_COLUMNS, type ImportKind } from '../parse/row/import-row.js';

/** A file of an import that has rejected rows. */
export interface FileWithRejects {
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
