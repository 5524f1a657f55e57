import { isDeepStrictEqual } from 'node:util';

/** How many of the exceptions to a law are shown. */
const SHOWN = 5;

/** Collects what was found to contradict the laws of one run, so that all of it is told and not the first alone. */
export class Oracle {
  private readonly found: string[] = [];

  /** One sentence for each law that does not hold. */
  get broken(): readonly string[] {
    return this.found;
  }

  /** Holds when there is no exception. @param exceptions ids and states, never names or texts of people */
  none(law: string, exceptions: readonly unknown[]): void {
    if (exceptions.length === 0) return;
    const shown = exceptions.slice(0, SHOWN).map((exception) => JSON.stringify(exception));
    this.found.push(`${law}: ${exceptions.length} exceptions, such as ${shown.join(', ')}`);
  }

  /** Holds when both are the same. */
  same(law: string, actual: unknown, expected: unknown): void {
    if (isDeepStrictEqual(actual, expected)) return;
    this.found.push(`${law}: it is ${JSON.stringify(actual)} and should be ${JSON.stringify(expected)}`);
  }

  /** Holds when `actual` is not more than `most`. */
  atMost(law: string, actual: number, most: number): void {
    if (actual > most) this.found.push(`${law}: it is ${actual} and should be at most ${most}`);
  }
}
