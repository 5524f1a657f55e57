/**
 * The strict limit: at most `calls` accepted arrivals in any sliding window of `windowMs`, each counted at the moment
 * at which it arrived. Refused arrivals take no place.
 */
export class SlidingLimit {
  private readonly accepted: number[] = [];

  /** @returns undefined when accepted, else the milliseconds until a place becomes free */
  admit(atMs: number, calls: number, windowMs: number): number | undefined {
    const firstInside = this.accepted.findIndex((accepted) => accepted > atMs - windowMs);
    if (firstInside !== 0) this.accepted.splice(0, firstInside < 0 ? this.accepted.length : firstInside);
    if (this.accepted.length < calls) {
      this.accepted.push(atMs);
      return undefined;
    }
    const placeFreedBy = this.accepted[this.accepted.length - calls] ?? atMs;
    return placeFreedBy + windowMs - atMs;
  }

  /** Takes back an admission: the call was answered 429 after all. */
  withdraw(atMs: number): void {
    const index = this.accepted.lastIndexOf(atMs);
    if (index >= 0) this.accepted.splice(index, 1);
  }
}

/** The most arrivals in any sliding window; `arrivalsMs` in any order. */
export function largestWindow(arrivalsMs: readonly number[], windowMs: number): number {
  const sorted = [...arrivalsMs].sort((a, b) => a - b);
  let first = 0;
  let largest = 0;
  for (const [last, at] of sorted.entries()) {
    while ((sorted[first] ?? at) <= at - windowMs) first += 1;
    largest = Math.max(largest, last - first + 1);
  }
  return largest;
}
