import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The folder of an embedded server's data. @param home of the server, as whoever started it is told */
export const dataOf = (home: string): string => path.join(home, 'cluster', 'data');

/**
 * The process of an embedded server.
 *
 * @throws Error when its file is not whole: 0 would stand for the test's own group of processes
 */
export function postmasterOf(home: string): number {
  const pid = Number(readFileSync(path.join(dataOf(home), 'postmaster.pid'), 'utf8').split('\n')[0]);
  if (!(pid > 1)) throw new Error(`The server in ${home} has not written its process number`);
  return pid;
}

/** Ends an embedded server as its signal says; whoever holds it starts it again. */
export function killPostmaster(home: string, signal: NodeJS.Signals = 'SIGKILL'): void {
  process.kill(postmasterOf(home), signal);
}
