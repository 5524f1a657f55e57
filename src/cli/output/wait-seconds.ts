import { InvalidArgumentError } from 'commander';

/** Seconds that the service waits at most (`Prefer: wait`). */
const LONGEST = 60;

/** Reads how long a command waits. @throws {InvalidArgumentError} when that is no number of seconds up to 60 */
export function waitSeconds(text: string): number {
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds <= LONGEST)) throw new InvalidArgumentError(`Say whole seconds, 0 to ${LONGEST}.`);
  return seconds;
}
