import { CsvPeople } from './csv/csv-people.js';
import { WorkMeter } from './csv/csv-records.js';
import { fhirEvents } from './fhir/fhir-people.js';
import { jsonPersonRow } from './json-lines-people.js';
import { CSV_COLUMNS, FHIR_COLUMNS, type ReadEvent, type ReadOptions } from './row/import-row.js';
import { BundleEntries, JsonLines } from './text/json-records.js';
import { utf8Text } from './text/utf8-text.js';

/** What an event costs beside its characters, in characters: short rows are checked and stored as long ones are. */
export const EVENT_COST = 64;

/** Characters of a row and of a cell. */
const DEFAULT_LIMITS = { row: 1024 * 1024, cell: 64 * 1024 };

/** JSON of a person is no longer than so many of the largest cells: reading one blocks the event loop briefly. */
const RECORD_CELLS = 4;

/**
 * Reads one uploaded file as it comes, in constant memory: first its columns, then a row for each person (accepted, or
 * rejected with its line, field, code and hint) with the references that are resolved once all files of the
 * import are read. A bad row never stops the file.
 *
 * CSV with the kind `fhir` needs a column `kind`: so a file of rejected FHIR rows can come back. JSON lines with the
 * kind `fhir` are FHIR bulk data.
 *
 * Every character is looked at a few times at most, and the event loop goes round every few milliseconds meanwhile.
 * @param source the bytes, in chunks of any size; its own errors pass through
 * @throws UnreadableFile when the file as a whole is refused, also after rows were read: those count for nothing
 */
export async function* readPeople(
  source: AsyncIterable<Buffer>,
  options: ReadOptions,
  meter = new WorkMeter(),
): AsyncGenerator<ReadEvent> {
  const push = options.format === 'csv' ? csvReader(options, meter) : jsonReader(options);
  for await (const text of withEnd(utf8Text(source))) {
    meter.spend(text.length);
    for (const event of push(text, text === '')) {
      meter.spend(EVENT_COST);
      if (meter.isPauseDue) await meter.pause();
      yield event;
    }
    if (meter.isPauseDue) await meter.pause();
  }
}

/** The pieces of a text, then an empty one. */
async function* withEnd(text: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const piece of text) if (piece !== '') yield piece;
  yield '';
}

/** Takes a file's text piece by piece, and is called once more for its end. */
type Reader = (text: string, last: boolean) => Iterable<ReadEvent>;

function csvReader({ kind, limits = DEFAULT_LIMITS }: ReadOptions, meter: WorkMeter): Reader {
  const people = new CsvPeople(kind, limits, meter);
  return (text, last) => people.push(text, last);
}

function jsonReader({ limits = DEFAULT_LIMITS, ...options }: ReadOptions): Reader {
  const { format, kind, whole = false } = options;
  const isFhir = format !== 'ndjson' || kind === 'fhir';
  const row = isFhir ? limits.row : Math.min(limits.row, RECORD_CELLS * limits.cell);
  const records = format === 'fhir-json' ? new BundleEntries(row, whole) : new JsonLines(row);
  let begun = false;
  return function* (text, last) {
    if (!begun) yield { type: 'columns', columns: [...(isFhir ? FHIR_COLUMNS : CSV_COLUMNS)] };
    begun = true;
    for (const record of records.push(text, last)) {
      if (record.text?.trim() === '') continue;
      if (isFhir) yield* fhirEvents(record, { ...options, limits: { row } });
      else yield jsonPersonRow(record, kind === 'providers' ? 'provider' : 'client', { ...limits, row });
    }
  };
}
