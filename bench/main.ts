import { availableParallelism, loadavg } from 'node:os';
import { benchAudit } from './audit.js';
import type { BenchRow } from './bench-row.js';
import { benchBudget } from './budget.js';
import { benchFeed } from './feed.js';
import { benchFootprint } from './footprint.js';
import { benchImportQueues } from './import-queues.js';
import { benchNoteLag } from './note-lag.js';
import { benchPeoplePage } from './people-page.js';
import { benchPush } from './push.js';
import { benchReceiver } from './receiver.js';
import { benchRecordings } from './recordings.js';
import { benchReimport } from './reimport.js';
import { benchStoredSessions } from './stored-sessions.js';

/** The benchmarks of `npm run bench`; `npm run bench -- receiver` runs only that one. */
const BENCHES: Record<string, () => Promise<BenchRow[]>> = {
  budget: benchBudget,
  'import-queues': benchImportQueues,
  reimport: benchReimport,
  receiver: benchReceiver,
  'note-lag': benchNoteLag,
  recordings: benchRecordings,
  'stored-sessions': benchStoredSessions,
  footprint: benchFootprint,
  audit: benchAudit,
  'people-page': benchPeoplePage,
  push: benchPush,
  feed: benchFeed,
};

const shown = (value: number) =>
  value.toLocaleString('en', value >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 });

function print(rows: BenchRow[]): void {
  const width = Math.max(...rows.map(({ name }) => name.length));
  for (const { name, value, unit, target, ok } of rows) {
    const verdict = target === undefined ? '' : `   ${target}  ${ok ? '✓' : '✗ missed'}`;
    console.log(`  ${name.padEnd(width)}  ${shown(value).padStart(10)} ${unit.padEnd(4)}${verdict}`);
  }
}

async function main(names: string[]): Promise<void> {
  const unknown = names.find((name) => !Object.hasOwn(BENCHES, name));
  if (unknown !== undefined) {
    throw new Error(`Unknown benchmark ${unknown}. The benchmarks are: ${Object.keys(BENCHES).join(', ')}.`);
  }
  // Ratios mean little on a busy machine, so the output shows its load.
  console.log(
    `${availableParallelism()} CPUs, load ${loadavg()[0]?.toFixed(1)} before the start, Node ${process.version}`,
  );
  let missed = 0;
  for (const [name, bench] of Object.entries(BENCHES)) {
    if (names.length > 0 && !names.includes(name)) continue;
    console.log(`\n${name}`);
    const rows = await bench();
    print(rows);
    missed += rows.filter(({ ok }) => ok === false).length;
  }
  if (missed > 0) console.log(`\n${missed} targets were missed.`);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
