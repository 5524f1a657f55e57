import { Buffer } from 'node:buffer';
import { readPeople } from './read-people.js';
import type {
  FileMapping,
  ReadEvent,
  ReadOptions,
  ReadRow,
  ResourceReference,
  StoredRecord,
} from './row/import-row.js';

/** A small file, read completely. */
export interface ReadFile {
  /** CSV only. */
  header: string[];
  mapping?: FileMapping;
  rows: ReadRow[];
  records: StoredRecord[];
  mentions: string[];
  facts: ResourceReference[];
  pages: Extract<ReadEvent, { type: 'page' }>[];
}

/** Yields bytes in chunks, like a socket. */
export async function* inChunks(bytes: Buffer, size = bytes.length): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** The default time at which `readAll` reads a file. */
export const NOW = new Date('2026-11-20T12:00:00Z');

/** Sorts the events of a file by type. */
export async function collect(batches: AsyncIterable<ReadEvent[]>): Promise<ReadFile> {
  const file: ReadFile = { header: [], rows: [], records: [], mentions: [], facts: [], pages: [] };
  for await (const events of batches) for (const event of events) add(file, event);
  return file;
}

function add(file: ReadFile, event: ReadEvent): void {
  if (event.type === 'mapping') Object.assign(file, { header: event.header, mapping: event.mapping });
  else if (event.type === 'row') file.rows.push(event);
  else if (event.type === 'record') file.records.push(event.record);
  else if (event.type === 'mention') file.mentions.push(...event.texts);
  else if (event.type === 'page') file.pages.push(event);
  else if (event.type !== 'merge') file.facts.push(event);
}

/**
 * Reads a file that fits into memory (samples, tests) with `readPeople`.
 *
 * @throws UnreadableFile as `readPeople` does
 */
export async function readAll(
  file: string | Buffer,
  options: Omit<ReadOptions, 'now'> & { now?: Date },
  chunk?: number,
): Promise<ReadFile> {
  return collect(readPeople(inChunks(Buffer.from(file), chunk), { now: NOW, ...options }));
}
