import type { SeededRandom } from '../../simulator/seeded-random.js';
import type { FitValues } from './fit-values.js';

/** A request while it is made. */
export class Draft {
  readonly headers: Record<string, string | string[]> = {};
  /** What was made odd in it. */
  readonly oddities: string[] = [];

  constructor(
    readonly random: SeededRandom,
    readonly fit: FitValues,
  ) {}

  /** Whether something is to be odd; it is remembered by its name. */
  odd(what: string, probability: number): boolean {
    const is = this.random.chance(probability);
    if (is) this.oddities.push(what);
    return is;
  }
}
