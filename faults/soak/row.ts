import type { Lag } from './lags.js';

/** A process that was ready at the end of an interval. */
export interface ProcessRow {
  /** Its roles and its place. */
  readonly name: string;
  readonly pid: number;
  /** The middle of its resident memory in the interval. */
  readonly mib: number;
}

/** The figures of one interval; counts are since the start. */
export interface Row {
  readonly minutes: number;
  readonly processes: readonly ProcessRow[];
  /** The most resident memory that any process had. */
  readonly apiMib: number;
  readonly workerMib: number;
  readonly starts: number;
  /** The most connections that all processes had open. */
  readonly postgres: number;
  readonly redis: number;
  readonly databaseMib: number;
  /** From an event until the EHR that reads the feed has it. */
  readonly feed: Lag | null;
  /** From an event until the endpoint has taken it. */
  readonly push: Lag | null;
  /** Until a webhook was answered. */
  readonly webhook: Lag | null;
  /** From the notes on the platform until the EHR reads of them. */
  readonly notes: Lag | null;
  /** The longest that due work had waited. */
  readonly dueSeconds: number;
  readonly kills: number;
  readonly faults: number;
  readonly requests: number;
  readonly sessions: number;
  /** Sessions that did not begin, because due work had waited too long. */
  readonly held: number;
  readonly events: number;
  readonly logMib: number;
  /** Resident memory of the soak, with the platform in it. */
  readonly ownMib: number;
  /** Of the machine in the last five minutes, per CPU: what takes long on one that does other work says little. */
  readonly load: number;
}

const whole = (lag: Lag | null): string => (lag ? `${lag.p50}/${lag.p99}/${lag.max}` : '-');

const COLUMNS: readonly [name: string, width: number, value: (row: Row) => string][] = [
  ['min', 5, ({ minutes }) => minutes.toFixed(1)],
  ['api MiB', 7, ({ apiMib }) => String(apiMib)],
  ['worker MiB', 10, ({ workerMib }) => String(workerMib)],
  ['starts', 6, ({ starts }) => String(starts)],
  ['pg', 3, ({ postgres }) => String(postgres)],
  ['redis', 5, ({ redis }) => String(redis)],
  ['db MiB', 6, ({ databaseMib }) => databaseMib.toFixed(0)],
  ['feed p50/p99/max ms', 19, ({ feed }) => whole(feed)],
  ['push p50/p99/max ms', 19, ({ push }) => whole(push)],
  ['webhook p99/max ms', 18, ({ webhook }) => (webhook ? `${webhook.p99}/${webhook.max}` : '-')],
  ['notes p50/p99/max ms', 20, ({ notes }) => whole(notes)],
  ['due s', 5, ({ dueSeconds }) => dueSeconds.toFixed(0)],
  ['kills', 5, ({ kills }) => String(kills)],
  ['faults', 6, ({ faults }) => String(faults)],
  ['requests', 8, ({ requests }) => String(requests)],
  ['sessions', 8, ({ sessions }) => String(sessions)],
  ['held', 5, ({ held }) => String(held)],
  ['events', 7, ({ events }) => String(events)],
  ['log MiB', 7, ({ logMib }) => logMib.toFixed(1)],
  ['soak MiB', 8, ({ ownMib }) => String(ownMib)],
  ['load/CPU', 8, ({ load }) => load.toFixed(1)],
];

/** The names of the columns, as wide as the cells below them. */
export const header = (): string => COLUMNS.map(([name, width]) => name.padStart(width)).join('  ');

/** One row of the table. */
export const line = (row: Row): string => COLUMNS.map(([, width, value]) => value(row).padStart(width)).join('  ');
