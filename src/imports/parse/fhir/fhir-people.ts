import {
  DEFAULT_LIMITS,
  FHIR_COLUMNS,
  type FileSummary,
  type ReadEvent,
  type ReadOptions,
  type ReadRow,
  type RejectedRow,
  rawText,
} from '../row/import-row.js';
import { isJsonObject, type JsonObject, parseObject, textIn } from '../row/json-object.js';
import { type Rejection, rejection } from '../row/rejection.js';
import { isImportableId } from '../row/validate-person.js';
import type { ResourceScan } from '../text/resource-scan.js';
import { linesOf } from '../text/text-lines.js';
import { UnreadableFile } from '../text/unreadable-file.js';
import type { WorkMeter } from '../text/work-meter.js';
import { FhirBundle } from './fhir-bundle.js';
import { isSupporting, personKindOf, resourceEvents } from './fhir-resource.js';

type FhirOptions = Pick<ReadOptions, 'limits' | 'idSystems' | 'now' | 'whole'>;

const PARTIAL =
  'This Bundle is one page of a search (it has a link "next"), so that whoever stands on another page would count as missing: send the whole export, or import it without mode=snapshot.';

/** Counts what a FHIR file holds while it is turned into events. */
class FhirRows {
  readonly account: FileSummary = { type: 'end', units: 0, header: 0, blank: 0, supporting: 0 };

  private readonly idSystems: readonly string[];
  readonly limit: number;

  constructor(private readonly options: FhirOptions) {
    this.idSystems = options.idSystems ?? [];
    this.limit = (options.limits ?? DEFAULT_LIMITS).row;
  }

  /** The events of one resource; `undefined` stands for something that is no JSON object. */
  *resource(line: number, text: string, resource: JsonObject | undefined, fullUrl?: string): Generator<ReadEvent> {
    const { now } = this.options;
    const events = resource && resourceEvents(resource, { line, idSystems: this.idSystems, now, fullUrl });
    if (!resource) return yield this.reject(line, text, rejection('bad-json'));
    if (!events) return yield this.reject(line, text, rejection('not-a-person'));
    if (isSupporting(resource.resourceType)) this.account.supporting++;
    yield* events;
  }

  /** What is too large to be read: a row only where it may be a person. */
  *tooLarge(line: number, scan: ResourceScan | undefined): Generator<ReadRow> {
    if (isSupporting(scan?.resourceType)) {
      this.account.supporting++;
      return;
    }
    const kind = personKindOf(scan?.resourceType);
    const known = this.idSystems.length === 0 && isImportableId(scan?.id) ? { externalId: scan.id } : {};
    const row = this.reject(line, '', rejection('row-too-large', { limit: this.limit }));
    yield { ...row, ...(kind && { kind, ...known }) };
  }

  private reject(line: number, text: string, why: Rejection): RejectedRow {
    return { type: 'row', ok: false, line, span: 1, raw: rawText(text), ...why };
  }
}

/** The rows and references of FHIR R4 bulk data, one resource on each line. */
export async function* readFhirLines(
  source: AsyncIterable<string>,
  options: FhirOptions,
  meter: WorkMeter,
): AsyncGenerator<ReadEvent> {
  const rows = new FhirRows(options);
  yield { type: 'columns', columns: [...FHIR_COLUMNS] };
  for await (const { line, text, scan } of linesOf(source, rows.limit, meter)) {
    rows.account.units++;
    if (text === undefined) yield* rows.tooLarge(line, scan);
    else if (text.trim() === '') rows.account.blank++;
    else yield* rows.resource(line, text, parseObject(text));
  }
  yield rows.account;
}

/**
 * The rows and references of a FHIR R4 Bundle; a row's line is the one on which its entry begins.
 * @throws UnreadableFile when it is no Bundle or its JSON is broken outside its entries
 */
export async function* readFhirBundle(
  source: AsyncIterable<string>,
  options: FhirOptions,
  meter: WorkMeter,
): AsyncGenerator<ReadEvent> {
  const rows = new FhirRows(options);
  const bundle = new FhirBundle(rows.limit);
  yield { type: 'columns', columns: [...FHIR_COLUMNS] };
  for await (const piece of source) {
    meter.spend(piece.length);
    for (const { line, text, scan } of bundle.push(piece)) {
      rows.account.units++;
      if (text === undefined) {
        yield* rows.tooLarge(line, scan);
        continue;
      }
      const entry = parseObject(text);
      const resource = entry && (isJsonObject(entry.resource) ? entry.resource : {});
      yield* rows.resource(line, text, resource, textIn(entry?.fullUrl));
    }
  }
  bundle.end();
  if (options.whole && bundle.hasNext) throw new UnreadableFile('partial-bundle', 1, PARTIAL);
  yield rows.account;
}
