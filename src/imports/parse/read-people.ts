import { csvReader, MappedRecords } from './csv/csv-people.js';
import { WorkMeter } from './csv/csv-records.js';
import { fhirEvents } from './fhir/fhir-people.js';
import { jsonPersonRow } from './json-lines-people.js';
import type { ReadEvent, ReadLimits, ReadOptions, StoredRecord } from './row/import-row.js';
import { fileText } from './text/file-text.js';
import { BundleEntries, JsonLines } from './text/json-records.js';

/** Cost of an event in addition to its characters, in characters: short rows are checked and stored like long ones. */
export const EVENT_COST = 64;

/** Characters of a row and of a cell. */
const DEFAULT_LIMITS = { row: 1024 * 1024, cell: 64 * 1024 };

/** Maximum size of a person in JSON lines, in cells of the largest size, because parsing blocks the event loop. */
const RECORD_CELLS = 4;

/**
 * Reads one uploaded file as it arrives, in constant memory, and yields batches of events. CSV begins with its mapping; if
 * the mapping has a question, records follow instead of rows (see `readStored`). All formats yield a row for each person:
 * accepted, gone, or rejected with its line, code and hint. FHIR also yields references, which are resolved after the last
 * file. A bad row never stops the file.
 *
 * Every character is read a bounded number of times, and the event loop gets its turn every few milliseconds.
 *
 * @param source the bytes, in chunks of any size; its own errors pass through
 * @throws UnreadableFile if the file as a whole is refused, even after rows were read, which then do not count
 */
export async function* readPeople(
  source: AsyncIterable<Buffer>,
  options: ReadOptions,
  meter = new WorkMeter(),
): AsyncGenerator<ReadEvent[]> {
  const limits = options.limits ?? DEFAULT_LIMITS;
  const read = options.format === 'csv' ? csvReader({ ...options, limits }, meter) : jsonReader(options, limits);
  for await (const text of fileText(source)) {
    meter.spend(text.length);
    yield* paced(read(text, false), meter);
    if (meter.isPauseDue) await meter.pause();
  }
  yield* paced(read('', true), meter);
}

/**
 * Reads the stored records of a CSV file whose mapping had a question: the mapping with the chosen columns, then its
 * rows, or the records again if a question remains.
 *
 * @param records in the order of the file, in batches of any size
 * @param header of the file, as its `mapping` event has it
 * @throws UnreadableFile if a chosen column does not exist, or the rows cannot contain a required field
 */
export async function* readStored(
  records: AsyncIterable<StoredRecord[]>,
  header: string[],
  options: Pick<ReadOptions, 'kind' | 'columns' | 'limits' | 'whole'> & { headerLine: number },
): AsyncGenerator<ReadEvent[]> {
  const meter = new WorkMeter();
  const limits = options.limits ?? DEFAULT_LIMITS;
  const mapped = new MappedRecords(header, options.headerLine, { ...options, limits }, meter);
  const events = function* (batch: StoredRecord[]): Generator<ReadEvent> {
    for (const record of batch) yield* mapped.push(record);
  };
  for await (const batch of records) yield* paced(events(batch), meter);
  yield* paced(mapped.end(), meter);
}

/** Yields events together, because each step of an async generator is slow, and pauses when a pause is due. */
async function* paced(events: Iterable<ReadEvent>, meter: WorkMeter): AsyncGenerator<ReadEvent[]> {
  let batch: ReadEvent[] = [];
  for (const event of events) {
    meter.spend(EVENT_COST);
    batch.push(event);
    if (!meter.isPauseDue) continue;
    yield batch;
    batch = [];
    await meter.pause();
  }
  if (batch.length > 0) yield batch;
}

/** Like `csvReader`, for JSON lines, resources and Bundles. */
function jsonReader({ format, kind, ...options }: ReadOptions, limits: ReadLimits) {
  const isFhir = format !== 'ndjson' || kind === 'fhir';
  const row = isFhir ? limits.row : Math.min(limits.row, RECORD_CELLS * limits.cell);
  const records = format === 'fhir-json' ? new BundleEntries(row) : new JsonLines(row);
  let place = 0;
  return function* (text: string, last: boolean): Generator<ReadEvent> {
    for (const record of records.push(text, last)) {
      if (record.text?.trim() === '') continue;
      if (isFhir) yield* fhirEvents(record, { ...options, limits: { row }, place: place++ });
      else yield jsonPersonRow(record, kind, { ...limits, row });
    }
  };
}
