import { createReadStream, readdirSync } from 'node:fs';
import path from 'node:path';
import type { Searcher } from '../../harness/canaries.js';

/** Bytes of a file that are searched at a time. */
const CHUNK = 8 * 1024 ** 2;

/** Searches all files below a folder. @returns each find with the name of its file */
export async function findsInFiles(searcher: Searcher, folder: string): Promise<string[]> {
  const found = new Set<string>();
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const file of files) {
    const name = path.join(file.parentPath, file.name);
    let tail: Buffer = Buffer.alloc(0);
    for await (const chunk of createReadStream(name, { highWaterMark: CHUNK })) {
      const part = Buffer.concat([tail, chunk as Buffer]);
      for (const find of searcher.finds(part)) found.add(`${path.relative(folder, name)} ${find}`);
      tail = Buffer.from(part.subarray(Math.max(0, part.length - searcher.overlap)));
    }
  }
  return [...found];
}
