import { backoffMs } from '../../queue/backend/backoff.js';

/** Faults that concern every fetch, not one alone. */
const PAUSE_CAUSES = ['platform-unauthorized', 'platform-unreachable', 'rate-limited'] as const;
export type PauseCause = (typeof PAUSE_CAUSES)[number];

export const isPauseCause = (code: string): code is PauseCause => PAUSE_CAUSES.some((cause) => cause === code);

/** Bounds of a pause that the platform gave no length for, in milliseconds. */
const BOUNDS = { baseMs: 2_000, maxMs: 5 * 60_000 };

/**
 * Stops all fetches of a process when a fault concerns all of them, and lets one through as a probe when the pause is
 * over: a refused key or a platform that is down must not burn the attempts of every session.
 */
export class FetchPause {
  private until = 0;
  private failures = 0;
  private probing = false;
  private code: PauseCause | null = null;
  private succeededAt = 0;

  /** Answers whether a fetch may leave; while a pause is being probed only one at a time may. */
  mayFetch(nowMs: number): boolean {
    if (this.code === null) return true;
    if (nowMs < this.until || this.probing) return false;
    this.probing = true;
    return true;
  }

  /** The fetch that was let through had nothing to do, or showed nothing about the platform. */
  unused(): void {
    this.probing = false;
  }

  /** The platform answered like one that works. */
  succeeded(nowMs: number): void {
    this.succeededAt = nowMs;
    this.failures = 0;
    this.code = null;
    this.probing = false;
  }

  /**
   * Begins or lengthens a pause; a shorter one never overwrites a longer one.
   *
   * @param fraction a random number in [0, 1)
   * @param askedMs how long the platform asks to wait
   * @returns the moment on the clock of `nowMs` when the pause ends
   */
  begin(code: PauseCause, nowMs: number, fraction: number, askedMs?: number): number {
    // Fetches that were under way when the pause began show nothing new.
    if (this.code === null || nowMs >= this.until) this.failures += 1;
    this.code = code;
    this.probing = false;
    this.until = Math.max(this.until, nowMs + (askedMs ?? backoffMs(this.failures, fraction, BOUNDS)));
    return this.until;
  }

  /** Answers whether another fetch went well after this one was refused before: then the refusal is its own. */
  succeededSince(refusedMs: number): boolean {
    return this.succeededAt > refusedMs;
  }
}
