import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { BenchRow } from './bench-row.js';

/** Whoever tries the demo sees all of it within a minute. */
const LONGEST_SECONDS = 60;
const LAST_CHARACTERS = 2_000;

/** The whole demo, from an empty data folder to its end, as `npm run demo -- --once` runs it after its set-up. */
export async function benchDemo(): Promise<BenchRow[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'notebridge-bench-'));
  try {
    const seconds = await runDemo(folder);
    const ok = seconds <= LONGEST_SECONDS;
    return [{ name: 'demo, from its start to its end', value: seconds, unit: 's', target: `≤ ${LONGEST_SECONDS}`, ok }];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @returns the seconds that it took @throws {Error} with its last words when it fails */
async function runDemo(folder: string): Promise<number> {
  const begun = performance.now();
  const demo = spawn(process.execPath, [path.resolve(__dirname, '../demo/main.js'), '--once'], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DATA_DIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let last = '';
  for (const stream of [demo.stdout, demo.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      last = (last + text).slice(-LAST_CHARACTERS);
    });
  }
  const [code] = await once(demo, 'close');
  if (code !== 0) throw new Error(`The demo ended with ${code}:\n${last}`);
  return (performance.now() - begun) / 1_000;
}
