import type pg from 'pg';
import { SeededRandom } from '../../simulator/seeded-random.js';
import { Clock } from '../../src/config/clock.js';
import { Random } from '../../src/config/random.js';

/** Seeds all randomness of a world. */
const SEED = Number(process.env.SEED ?? 11);

/** A duration, such as '9 s'. */
export type Span = `${number} ${keyof typeof UNITS}`;

const UNITS = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/** The milliseconds of a span. */
export function msOf(span: Span): number {
  const [count, unit] = span.split(' ') as [string, keyof typeof UNITS];
  return Number(count) * UNITS[unit];
}

interface Timer {
  readonly atMs: number;
  readonly work: () => void;
}

/**
 * The clock of a world's processes. It stands still at whole milliseconds and moves only when a test moves it: a stalled
 * machine cannot end a lease, a grace period or a timeout, and rounding cannot put a time into the future.
 */
export class WorldClock extends Clock {
  private ms = Date.now();
  private readonly timers = new Set<Timer>();

  override now(): Date {
    return new Date(this.ms);
  }

  override monotonicMs(): number {
    return this.ms;
  }

  override after(ms: number, work: () => void): () => void {
    const timer = { atMs: this.ms + ms, work };
    this.timers.add(timer);
    return () => this.timers.delete(timer);
  }

  /** Milliseconds until the next timer; undefined without any. */
  get nextInMs(): number | undefined {
    if (this.timers.size === 0) return undefined;
    return Math.max(0, Math.min(...[...this.timers].map(({ atMs }) => atMs)) - this.ms);
  }

  /** Moves time and fires the timers that are then due, earliest first. */
  advance(ms: number): void {
    this.ms += ms;
    const due = [...this.timers].filter(({ atMs }) => atMs <= this.ms).sort((a, b) => a.atMs - b.atMs);
    for (const timer of due) if (this.timers.delete(timer)) timer.work();
  }
}

/** Randomness that restarts for each test, so that jitter is the same in each run. */
export class WorldRandom extends Random {
  private seeded = new SeededRandom(SEED);

  override fraction(): number {
    return this.seeded.fraction();
  }

  restart(): void {
    this.seeded = new SeededRandom(SEED);
  }
}

/** The schema that holds a world's `now()` and `clock_timestamp()`. It comes before `pg_catalog` in the search path. */
const SCHEMA = 'vtime';
const SEARCH_PATH = `public, ${SCHEMA}, pg_catalog`;

/**
 * SQL that sets the database's time. Both functions return a constant, which the planner inlines: calls cost nothing,
 * `due_at <= now()` remains an index condition, and replacing the functions invalidates cached plans.
 */
export function timeSql(now: Date): string {
  const define = (name: string, volatility: string) =>
    `CREATE OR REPLACE FUNCTION ${SCHEMA}.${name}() RETURNS timestamptz LANGUAGE sql ${volatility} PARALLEL SAFE
       RETURN timestamptz '${now.toISOString()}';`;
  return define('now', 'STABLE') + define('clock_timestamp', 'VOLATILE');
}

/** Creates the schema. Run it before the migrations, so that column defaults follow the world's time. */
export const CREATE_TIME = `CREATE SCHEMA ${SCHEMA}; GRANT USAGE ON SCHEMA ${SCHEMA} TO PUBLIC; ${timeSql(new Date())}`;

/** Run it after the migrations, so that functions that set their own search path follow the world's time, too. */
export const FOLLOW_TIME = `DO $$ DECLARE pinned regprocedure; BEGIN
  FOR pinned IN SELECT oid FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proconfig::text LIKE '%search_path%'
  LOOP EXECUTE format('ALTER FUNCTION %s SET search_path = ${SEARCH_PATH}, pg_temp', pinned); END LOOP;
END $$`;

/**
 * Run it after the migrations, so that no plan depends on the moment at which PostgreSQL vacuums or analyses a table. The
 * settings of tables are copied.
 */
export const STOP_AUTOVACUUM = `DO $$ DECLARE own regclass; BEGIN
  FOR own IN SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
  LOOP EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', own); END LOOP;
END $$`;

/** Puts the world's time into the search path of a database. A copy does not inherit this setting. */
export async function useTime(admin: pg.ClientBase, database: string): Promise<void> {
  await admin.query(`ALTER DATABASE ${database} SET search_path = ${SEARCH_PATH}`);
}

/**
 * `url` with session options, such as `-c work_mem=1MB`. A search path among them keeps the world's time: otherwise the
 * session would see the real one.
 */
export function withOptions(url: string, options: string): string {
  const kept = options.replace(/(search_path=)([^ ]*)/, (_, name, path) => `${name}${path},${SCHEMA},pg_catalog`);
  const changed = new URL(url);
  changed.searchParams.set('options', kept);
  return changed.toString();
}
