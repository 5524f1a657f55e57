import type { ReadEvent, ReadOptions, ReadRow } from '../row/import-row.js';
import { BundleEntries, JsonLines } from '../text/json-records.js';
import { fhirEvents } from './fhir-people.js';
import { ProviderReferences, type ResolvedProviders } from './provider-references.js';

export const NOW = new Date('2026-11-20T12:00:00Z');

type Options = Partial<Pick<ReadOptions, 'idSystems' | 'encounterSince' | 'limits'>> & { chunk?: number };

/** The events of a file that fits into memory: lines if it is a list, otherwise one Bundle. */
export function readFhir(file: object | string, options: Options = {}): ReadEvent[] {
  const { limits = { row: 1_000_000, cell: 1_000_000 }, chunk = 100_000 } = options;
  const isLines = Array.isArray(file) || typeof file === 'string';
  const lines = Array.isArray(file) ? file.map((line) => JSON.stringify(line)).join('\n') : file;
  const text = typeof lines === 'string' ? lines : JSON.stringify(file, null, 1);
  const records = isLines ? new JsonLines(limits.row) : new BundleEntries(limits.row);
  const events: ReadEvent[] = [];
  let place = 0;
  for (let at = 0; at <= text.length; at += chunk) {
    for (const record of records.push(text.slice(at, at + chunk), at + chunk > text.length)) {
      events.push(...fhirEvents(record, { now: NOW, ...options, limits, place: place++ }));
    }
  }
  return events;
}

export function rowsOf(events: ReadEvent[]): ReadRow[] {
  return events.filter((event) => event.type === 'row');
}

/** The providers of each client if every accepted provider, and those from earlier imports, can be mirrored. */
export function resolvedProviders(
  events: ReadEvent[],
  { earlier = [], idSystems }: { earlier?: string[]; idSystems?: string[] } = {},
): Map<string, ResolvedProviders> {
  const references = new ProviderReferences(1_000_000, idSystems);
  const mirrorable = new Set(earlier);
  const rejected = new Set<string>();
  for (const event of events) {
    if (event.type === 'row') {
      if (event.is === 'person' && event.person.kind === 'provider') mirrorable.add(event.person.externalId);
      if (event.is === 'rejected' && event.kind === 'provider') rejected.add(event.externalId ?? '');
    }
    if (event.type === 'row' || event.type === 'alias' || event.type === 'role' || event.type === 'link') {
      references.add(event);
    }
  }
  return references.resolve({ mirrorable, rejected });
}

/** The external ids of a client's providers. */
export function providersOf(client: string, events: ReadEvent[], options = {}): string[] | undefined {
  return resolvedProviders(events, options).get(client)?.providers;
}

/** The reasons why a client's references lead to no provider. */
export function lostOf(client: string, events: ReadEvent[], options = {}): object {
  return Object.fromEntries(resolvedProviders(events, options).get(client)?.lost ?? []);
}
