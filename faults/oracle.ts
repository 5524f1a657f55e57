import { isDeepStrictEqual } from 'node:util';

/** Maximum exceptions to an invariant that are printed. */
const MAX_SHOWN = 5;

/** Collects all violated invariants of one run, so that it reports more than the first one. */
export class Oracle {
  private readonly found: string[] = [];

  /** One sentence for each violated invariant. */
  get broken(): readonly string[] {
    return this.found;
  }

  /** Holds if there are no exceptions. @param exceptions ids and states, never names or texts of people */
  none(invariant: string, exceptions: readonly unknown[]): void {
    if (exceptions.length === 0) return;
    const shown = exceptions.slice(0, MAX_SHOWN).map((exception) => JSON.stringify(exception));
    this.found.push(`${invariant}: ${exceptions.length} exceptions, such as ${shown.join(', ')}`);
  }

  /** Holds if both are equal. */
  same(invariant: string, actual: unknown, expected: unknown): void {
    if (isDeepStrictEqual(actual, expected)) return;
    this.found.push(`${invariant}: it is ${JSON.stringify(actual)} and should be ${JSON.stringify(expected)}`);
  }

  /** Holds if `actual` is at most `max`. */
  atMost(invariant: string, actual: number, max: number): void {
    if (actual > max) this.found.push(`${invariant}: it is ${actual} and should be at most ${max}`);
  }
}
