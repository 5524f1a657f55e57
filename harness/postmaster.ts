import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The data folder of an embedded server. @param home as returned at its start */
export const dataOf = (home: string): string => path.join(home, 'cluster', 'data');

/**
 * The process of an embedded server.
 *
 * @throws Error if its pid file is incomplete, because 0 would mean the test's own process group
 */
export function postmasterOf(home: string): number {
  const pid = Number(readFileSync(path.join(dataOf(home), 'postmaster.pid'), 'utf8').split('\n')[0]);
  if (!(pid > 1)) throw new Error(`The server in ${home} has not written its process id`);
  return pid;
}

/** Sends a signal to an embedded server. */
export function killPostmaster(home: string, signal: NodeJS.Signals = 'SIGKILL'): void {
  process.kill(postmasterOf(home), signal);
}
