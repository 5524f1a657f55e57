/**
 * The simulator's only source of randomness: the same seed gives the same ids, delays and faults in the same order.
 * Mulberry32 (public domain, Tommy Ettinger): 32 bits of state, good enough for a simulator, not for secrets.
 */
export class SeededRandom {
  private state: number;

  /** @param idCase of UUIDs */
  constructor(
    readonly seed: number,
    private readonly idCase: () => 'lower' | 'upper' = () => 'lower',
  ) {
    this.state = seed >>> 0;
  }

  /** A number in [0, 1). */
  fraction(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = this.state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor(this.fraction() * count);
  }

  /** A number in [min, max], for delays in milliseconds. */
  between([min, max]: readonly [number, number]): number {
    return min + this.fraction() * (max - min);
  }

  /** True with the given probability; draws no number for 0 and 1, so that unused settings do not change the sequence. */
  chance(probability: number): boolean {
    if (probability <= 0) return false;
    return probability >= 1 || this.fraction() < probability;
  }

  /** Lower-case hex digits. */
  hex(digits: number): string {
    let text = '';
    while (text.length < digits) text += Math.floor(this.fraction() * 16).toString(16);
    return text;
  }

  /** A version 4 UUID. */
  uuid(): string {
    const variant = (8 + Math.floor(this.fraction() * 4)).toString(16);
    const id = `${this.hex(8)}-${this.hex(4)}-4${this.hex(3)}-${variant}${this.hex(3)}-${this.hex(12)}`;
    return this.idCase() === 'upper' ? id.toUpperCase() : id;
  }
}
