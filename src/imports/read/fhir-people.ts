import { FhirBundle } from './fhir-bundle.js';
import { isPersonResource, resourceEvents } from './fhir-resource.js';
import { type EndFact, FHIR_COLUMNS, type ReadEvent, type ReadLimits, type ReadRow } from './import-row.js';
import { isJsonObject, type JsonObject, parseObject, textIn } from './json-object.js';
import { rawText } from './raw-row.js';
import { type Rejection, rejection } from './rejection.js';
import { linesOf } from './text-lines.js';
import type { WorkMeter } from './work-meter.js';

/** Counts what a FHIR file holds while it is turned into events. */
class FhirRows {
  readonly account: EndFact = { type: 'end', units: 0, header: 0, blank: 0, supporting: 0 };

  constructor(
    private readonly limits: ReadLimits,
    private readonly idSystems: readonly string[],
  ) {}

  /** The events of one resource; `undefined` stands for something that is no JSON object. */
  *resource(line: number, text: string, resource: JsonObject | undefined, fullUrl?: string): Generator<ReadEvent> {
    const events = resource && resourceEvents(resource, { line, idSystems: this.idSystems, fullUrl });
    if (!resource) return yield this.reject(line, text, rejection('bad-json'));
    if (!events) return yield this.reject(line, text, rejection('not-a-person'));
    if (!isPersonResource(resource)) this.account.supporting++;
    yield* events;
  }

  tooLarge(line: number): ReadRow {
    return this.reject(line, '', rejection('row-too-large', { limit: this.limits.row }));
  }

  private reject(line: number, text: string, why: Rejection): ReadRow {
    return { type: 'row', ok: false, line, span: 1, raw: rawText(text), ...why };
  }
}

/** The rows and facts of FHIR R4 bulk data, one resource on each line. */
export async function* readFhirLines(
  source: AsyncIterable<string>,
  limits: ReadLimits,
  idSystems: readonly string[],
  meter: WorkMeter,
): AsyncGenerator<ReadEvent> {
  const rows = new FhirRows(limits, idSystems);
  yield { type: 'columns', columns: [...FHIR_COLUMNS] };
  for await (const { line, text } of linesOf(source, limits.row, meter)) {
    rows.account.units++;
    if (text === undefined) yield rows.tooLarge(line);
    else if (text.trim() === '') rows.account.blank++;
    else yield* rows.resource(line, text, parseObject(text));
  }
  yield rows.account;
}

/**
 * The rows and facts of a FHIR R4 Bundle; a row's line is the one on which its entry begins.
 * @throws UnreadableFile when it is no Bundle or its JSON is broken outside its entries
 */
export async function* readFhirBundle(
  source: AsyncIterable<string>,
  limits: ReadLimits,
  idSystems: readonly string[],
  meter: WorkMeter,
): AsyncGenerator<ReadEvent> {
  const rows = new FhirRows(limits, idSystems);
  const bundle = new FhirBundle(limits.row);
  yield { type: 'columns', columns: [...FHIR_COLUMNS] };
  for await (const piece of source) {
    meter.spend(piece.length);
    for (const { line, text } of bundle.push(piece)) {
      rows.account.units++;
      if (text === undefined) {
        yield rows.tooLarge(line);
        continue;
      }
      const entry = parseObject(text);
      const resource = entry && (isJsonObject(entry.resource) ? entry.resource : {});
      yield* rows.resource(line, text, resource, textIn(entry?.fullUrl));
    }
  }
  bundle.end();
  yield rows.account;
}
