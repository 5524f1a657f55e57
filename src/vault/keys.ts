import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Random } from '../config/random.js';

/** The settings that hold keys, each for one use, so that each is replaced on its own. */
export const KEY_SETTINGS = ['DATA_KEYS', 'FINGERPRINT_KEYS', 'AUDIT_KEYS'] as const;
export type KeySetting = (typeof KEY_SETTINGS)[number];

/** A key of 32 bytes and its id, which every value of the key contains. */
export interface SecretKey {
  id: string;
  key: Buffer;
}

/** Reads `id:base64` pairs as validated by the environment. */
export function parseKeys(pairs: readonly string[]): SecretKey[] {
  return pairs.map((pair) => {
    const colon = pair.indexOf(':');
    return { id: pair.slice(0, colon), key: Buffer.from(pair.slice(colon + 1), 'base64') };
  });
}

/**
 * Reads the keys that an earlier start made next to the embedded database, or makes the first one.
 *
 * @param folder the data folder, `.data` by default
 * @returns pairs as the setting holds them
 */
export async function keptKeys(folder: string, setting: KeySetting, random: Random): Promise<string[]> {
  const file = keysFile(folder, setting);
  await mkdir(folder, { recursive: true });
  const draft = `${file}.${random.bytes(8).toString('hex')}`;
  await writeFile(draft, `k1:${random.bytes(32).toString('base64')}\n`, { mode: 0o600, flush: true });
  // link() fails when the file is there: of two concurrent first starts, one key wins, and it is never seen half-written.
  await link(draft, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await rm(draft, { force: true });
  return readKeptKeys(folder, setting);
}

/** The same for a command, which makes none. */
export async function readKeptKeys(folder: string, setting: KeySetting): Promise<string[]> {
  return (await readFile(keysFile(folder, setting), 'utf8')).trim().split(/[\s,]+/);
}

/** `.data/data-keys` and the like. */
function keysFile(folder: string, setting: KeySetting): string {
  return path.join(folder, setting.toLowerCase().replace('_', '-'));
}
