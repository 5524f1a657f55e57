import type pg from 'pg';
import { SeededRandom } from '../../simulator/seeded-random.js';
import { Clock } from '../../src/config/clock.js';
import { Random } from '../../src/config/random.js';

/** Of all chance in a world. */
const SEED = Number(process.env.SEED ?? 11);

/** How long something lasts in a world. */
export type Span = `${number} ${keyof typeof UNITS}`;

const UNITS = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/** The milliseconds of a span. */
export function msOf(span: Span): number {
  const [count, unit] = span.split(' ') as [string, keyof typeof UNITS];
  return Number(count) * UNITS[unit];
}

interface Planned {
  readonly atMs: number;
  readonly work: () => void;
}

/**
 * The time of a world as its processes see it. It stands still, in whole milliseconds, and passes when a test says so: no
 * stall of the machine ends a lease, a grace or a timeout, and nothing is rounded into what comes.
 */
export class WorldClock extends Clock {
  private ms = Date.now();
  private readonly planned = new Set<Planned>();

  override now(): Date {
    return new Date(this.ms);
  }

  override monotonicMs(): number {
    return this.ms;
  }

  override after(ms: number, work: () => void): () => void {
    const planned = { atMs: this.ms + ms, work };
    this.planned.add(planned);
    return () => this.planned.delete(planned);
  }

  /** Milliseconds until the next that is planned; undefined when nothing is. */
  get nextInMs(): number | undefined {
    const moments = [...this.planned].map(({ atMs }) => atMs);
    return moments.length === 0 ? undefined : Math.max(0, Math.min(...moments) - this.ms);
  }

  /** Lets time pass, and does what was planned for until then. */
  pass(ms: number): void {
    this.ms += ms;
    const due = [...this.planned].filter(({ atMs }) => atMs <= this.ms).sort((one, other) => one.atMs - other.atMs);
    for (const planned of due) if (this.planned.delete(planned)) planned.work();
  }
}

/** The chance of a world: the same in each test, so that what waits for a part of a second waits as long each time. */
export class WorldRandom extends Random {
  private seeded = new SeededRandom(SEED);

  override fraction(): number {
    return this.seeded.fraction();
  }

  /** Begins anew. */
  begin(): void {
    this.seeded = new SeededRandom(SEED);
  }
}

/**
 * Whose SQL says `now()` and `clock_timestamp()` gets this moment, once `vtime` comes before `pg_catalog`. Both are a
 * constant, which the planner puts in the place of the call: they cost nothing, `due_at <= now()` is an index condition
 * still, and plans that are kept end with the functions' replacement.
 */
export function timeSql(now: Date): string {
  const define = (name: string, volatility: string) =>
    `CREATE OR REPLACE FUNCTION vtime.${name}() RETURNS timestamptz LANGUAGE sql ${volatility} PARALLEL SAFE
       RETURN timestamptz '${now.toISOString()}';`;
  return define('now', 'STABLE') + define('clock_timestamp', 'VOLATILE');
}

/** Of a new database, before its migrations: what they make finds the world's time, column defaults too. */
export const TIME_SCHEMA = `CREATE SCHEMA vtime; GRANT USAGE ON SCHEMA vtime TO PUBLIC; ${timeSql(new Date())}`;

/** Of the same database after its migrations: functions with a search path of their own find the world's time, too. */
export const FOLLOW_TIME = `DO $$ DECLARE pinned regprocedure; BEGIN
  FOR pinned IN SELECT oid FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proconfig::text LIKE '%search_path%'
  LOOP EXECUTE format('ALTER FUNCTION %s SET search_path = public, vtime, pg_catalog, pg_temp', pinned); END LOOP;
END $$`;

/** Has every new session of a database look there first. It is no part of the database itself: a copy needs it again. */
export const useTime = async (admin: pg.ClientBase, database: string): Promise<void> => {
  await admin.query(`ALTER DATABASE ${database} SET search_path = public, vtime, pg_catalog`);
};
