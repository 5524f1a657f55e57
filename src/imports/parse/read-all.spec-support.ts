import { Buffer } from 'node:buffer';
import { readPeople } from './read-people.js';
import type { ReadEvent, ReadOptions, ReadRow, ResourceReference } from './row/import-row.js';

/** A whole small file, read at once. */
export interface ReadFile {
  columns: string[];
  rows: ReadRow[];
  facts: ResourceReference[];
}

/** Gives bytes out in chunks, as a socket would. */
export async function* inChunks(bytes: Buffer, size = bytes.length): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** The present of files that are read with `readAll`, unless told. */
export const NOW = new Date('2026-11-20T12:00:00Z');

/**
 * Reads a file that fits into memory (samples, tests) with `readPeople`.
 * @throws UnreadableFile as `readPeople` does
 */
export async function readAll(
  file: string | Buffer,
  options: Omit<ReadOptions, 'now'> & { now?: Date },
  chunk?: number,
): Promise<ReadFile> {
  const columns: string[] = [];
  const rows: ReadRow[] = [];
  const facts: ResourceReference[] = [];
  const take = (event: ReadEvent): void => {
    if (event.type === 'columns') columns.push(...event.columns);
    else if (event.type === 'row') rows.push(event);
    else facts.push(event);
  };
  for await (const event of readPeople(inChunks(Buffer.from(file), chunk), { now: NOW, ...options })) take(event);
  return { columns, rows, facts };
}
