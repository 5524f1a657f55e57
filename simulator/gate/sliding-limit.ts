/**
 * The strict limit: at most `calls` accepted arrivals in any sliding window of `windowMs`, each counted at its time of
 * arrival. Refused arrivals do not count.
 */
export class SlidingLimit {
  private readonly accepted: number[] = [];

  /** @returns undefined if accepted, otherwise the milliseconds until the limit accepts another arrival */
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

  /** Uncounts an accepted arrival that was answered 429 by a fault rule. */
  withdraw(atMs: number): void {
    const index = this.accepted.lastIndexOf(atMs);
    if (index >= 0) this.accepted.splice(index, 1);
  }
}

/** Maximum arrivals in any sliding window; `arrivalsMs` in any order. */
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
