import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Random } from '../config/random.js';

/** A key of 32 bytes for AES-256 and its name in the header of encrypted values. */
export interface DataKey {
  id: string;
  key: Buffer;
}

/** Reads `id:base64` pairs as validated by the environment. */
export function parseDataKeys(pairs: string[]): DataKey[] {
  return pairs.map((pair) => {
    const colon = pair.indexOf(':');
    return { id: pair.slice(0, colon), key: Buffer.from(pair.slice(colon + 1), 'base64') };
  });
}

/**
 * Reads the data keys that an earlier start made beside the embedded database, or makes the first one.
 *
 * @param folder the data folder, `.data` by default
 * @returns pairs as `DATA_KEYS` holds them
 */
export async function keptDataKeys(folder: string, random: Random): Promise<string[]> {
  const file = keysFile(folder);
  await mkdir(folder, { recursive: true });
  const draft = `${file}.${random.bytes(8).toString('hex')}`;
  await writeFile(draft, `k1:${random.bytes(32).toString('base64')}\n`, { mode: 0o600, flush: true });
  // link() fails when the file is there: of two first starts at once, one key wins, and it is never seen half-written.
  await link(draft, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await rm(draft, { force: true });
  return readKeptDataKeys(folder);
}

/** The same for a command, which makes none. */
export async function readKeptDataKeys(folder: string): Promise<string[]> {
  return (await readFile(keysFile(folder), 'utf8')).trim().split(/[\s,]+/);
}

const keysFile = (folder: string): string => path.join(folder, 'data-keys');
