import type { SeededRandom } from '../../simulator/seeded-random.js';
import type { FitValues } from './fit-values.js';

/** A request under construction. */
export class Draft {
  readonly headers: Record<string, string | string[]> = {};
  /** The odd parts of the request. */
  readonly oddities: string[] = [];

  constructor(
    readonly random: SeededRandom,
    readonly fit: FitValues,
  ) {}

  /** Decides whether to make a part odd, and records its name. */
  odd(what: string, probability: number): boolean {
    const is = this.random.chance(probability);
    if (is) this.oddities.push(what);
    return is;
  }
}
