import type { Oracle } from '../oracle.js';
import { median } from './lags.js';
import type { Row } from './row.js';

/** Rows that a trend needs: the first one is warm-up, and each third of the rest holds two. */
export const MIN_ROWS = 7;
/** Rows of one process that its memory is judged by, in addition to its first. */
const MIN_ROWS_OF_PROCESS = 4;

/** Resident memory of any process at any time. */
const MAX_MIB = 512;
/** How much more memory a process may have at its end than after its warm-up: heaps grow in steps. */
const MEMORY = { factor: 1.25, more: 32 };
/** Of DATABASE_CONNECTIONS in each of four processes. */
const MAX_POSTGRES = 4 * 19;
const CONNECTIONS = { factor: 1, more: 4 };
/** Disk per event in the second half, over that in the first, which holds the import. */
const DISK = { factor: 1.25, more: 0 };
/** Milliseconds of the middle wait. A machine that gets busier doubles it; what queues up reaches minutes. */
const LAG = { factor: 3, more: 2_000 };
/** Load per CPU above which lags say more about the machine than about the service. */
const BUSY = 3;
/** Share of the sessions that may be held back, while the platform rejects everything, on a machine that is not busy. */
const MAX_HELD = 0.05;

const LAGS = ['feed', 'push', 'notes'] as const;

/** Holds when nothing grows but what is stored. @param rows of whole intervals under work */
export function judge(rows: readonly Row[], oracle: Oracle): void {
  oracle.atMost('MiB of an api process', most(rows, 'apiMib'), MAX_MIB);
  oracle.atMost('MiB of a worker process', most(rows, 'workerMib'), MAX_MIB);
  oracle.atMost('connections to PostgreSQL', most(rows, 'postgres'), MAX_POSTGRES);
  if (rows.length < MIN_ROWS) return;
  const warm = rows.slice(1);
  const third = Math.floor(warm.length / 3);
  const [first, last] = [warm.slice(0, third), warm.slice(-third)];
  const grows = (what: string, from: number, to: number, { factor, more }: typeof MEMORY) =>
    oracle.atMost(`${what} at the end, compared with ${from} at the beginning`, to, Math.ceil(factor * from + more));

  for (const { name, pid } of rows.at(-1)?.processes ?? []) {
    const life = rows.flatMap(({ processes }) => processes.filter((one) => one.pid === pid).map(({ mib }) => mib));
    const [, ...settled] = life;
    if (settled.length < MIN_ROWS_OF_PROCESS) continue;
    const part = Math.floor(settled.length / 2);
    grows(`MiB of ${name}`, median(settled.slice(0, part)), median(settled.slice(-part)), MEMORY);
  }
  for (const store of ['postgres', 'redis'] as const)
    grows(`connections to ${store}`, most(first, store), most(last, store), CONNECTIONS);
  for (const name of LAGS) {
    const calm = (part: readonly Row[]) => part.flatMap((row) => (row.load > BUSY ? [] : (row[name]?.p50 ?? [])));
    if (calm(first).length === 0 || calm(last).length === 0) continue;
    const middle = (part: readonly Row[]) => median(calm(part));
    grows(`middle lag of ${name} in ms`, middle(first), middle(last), LAG);
  }
  const held = warm.map((row, at) => (row.load > BUSY ? 0 : row.held - (rows[at]?.held ?? 0)));
  oracle.atMost(
    'sessions held back on a machine that was not busy',
    held.reduce((sum, count) => sum + count, 0),
    Math.ceil(MAX_HELD * (rows.at(-1)?.sessions ?? 0)),
  );
  const half = Math.floor(warm.length / 2);
  grows('bytes of disk per event', bytesPerEvent(warm.slice(0, half + 1)), bytesPerEvent(warm.slice(half)), DISK);
}

/** Bytes that each event of the feed adds to the database, including the related rows. */
export function bytesPerEvent(rows: readonly Row[]): number {
  const [from, to] = [rows[0], rows.at(-1)];
  if (!from || !to || to.events === from.events) return 0;
  return Math.round(((to.databaseMib - from.databaseMib) * 1024 ** 2) / (to.events - from.events));
}

const most = (rows: readonly Row[], name: 'apiMib' | 'workerMib' | 'postgres' | 'redis'): number =>
  Math.max(0, ...rows.map((row) => row[name]));
