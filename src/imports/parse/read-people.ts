import { readCsvPeople } from './csv/csv-people.js';
import { readFhirBundle, readFhirLines } from './fhir/fhir-people.js';
import { readJsonLinesPeople } from './json-lines-people.js';
import { DEFAULT_LIMITS, type ReadEvent, type ReadOptions } from './row/import-row.js';
import { utf8Text } from './text/utf8-text.js';
import { EVENT_COST, WorkMeter } from './text/work-meter.js';

/**
 * Reads one uploaded file as it comes, in constant memory: first its columns, then a row for each person (accepted, or
 * rejected with its line, field, code and hint) with the references that are resolved once all files of the
 * import are read, last the account of the whole file. A bad row never stops the file.
 *
 * CSV with the kind `fhir` needs a column `kind`: so a file of rejected FHIR rows can come back. JSON lines with the
 * kind `fhir` are FHIR bulk data.
 *
 * Every character is looked at a few times at most, and the event loop goes round every few milliseconds meanwhile.
 * @param source the bytes, in chunks of any size; its own errors pass through
 * @throws UnreadableFile when the file as a whole is refused, also after rows were read: those count for nothing
 */
export function readPeople(
  source: AsyncIterable<Buffer>,
  options: ReadOptions,
  meter = new WorkMeter(),
): AsyncIterable<ReadEvent> {
  return meter.pacing(eventsOf(meter.pacing(utf8Text(source), 0), options, meter), EVENT_COST);
}

function eventsOf(text: AsyncIterable<string>, options: ReadOptions, meter: WorkMeter): AsyncIterable<ReadEvent> {
  const { format, kind, limits = DEFAULT_LIMITS } = options;
  if (format === 'csv') return readCsvPeople(text, kind, limits, meter);
  if (format === 'fhir-json') return readFhirBundle(text, options, meter);
  if (format === 'fhir-ndjson' || kind === 'fhir') return readFhirLines(text, options, meter);
  return readJsonLinesPeople(text, kind === 'providers' ? 'provider' : 'client', limits, meter);
}
