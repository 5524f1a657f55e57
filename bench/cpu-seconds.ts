import { readdir, readFile } from 'node:fs/promises';
import type pg from 'pg';

/** Clock ticks of /proc in a second (USER_HZ), on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

interface ProcessTimes {
  pid: number;
  parent: number;
  /** Ticks of the process itself, and of its children that have ended and were reaped. */
  ticks: number;
}

/**
 * Seconds of CPU that a process and its descendants have used so far (proc(5), /proc/pid/stat). Unlike elapsed time,
 * they hardly depend on other work of the machine.
 *
 * @throws {Error} where there is no /proc
 */
export async function cpuSeconds(root: number): Promise<number> {
  const all = await processTimes();
  const ticksOf = (pid: number): number =>
    all.filter(({ parent }) => parent === pid).reduce((sum, child) => sum + child.ticks + ticksOf(child.pid), 0);
  const own = all.find(({ pid }) => pid === root)?.ticks ?? 0;
  return (own + ticksOf(root)) / TICKS_PER_SECOND;
}

/** The parent process of all backends of this session's server. */
export async function postmasterOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const backend = (await processTimes()).find(({ pid }) => pid === rows[0]?.pid);
  if (!backend) throw new Error('The server of this session does not run on this machine.');
  return backend.parent;
}

async function processTimes(): Promise<ProcessTimes[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const read = pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)); // it has just ended
  return (await Promise.all(read)).flatMap((stat) => (stat === undefined ? [] : [timesIn(stat)]));
}

/** The second field is a name in parentheses with any characters, so fields are counted after the last parenthesis. */
function timesIn(stat: string): ProcessTimes {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { pid: Number.parseInt(stat, 10), parent: Number(fields[1]), ticks };
}
