import { backoffMs } from '../../queue/work/backoff.js';

/** Faults that affect every fetch. */
const PAUSE_CAUSES = ['platform-unauthorized', 'platform-address', 'platform-unreachable', 'rate-limited'] as const;
export type PauseCause = (typeof PAUSE_CAUSES)[number];

export const isPauseCause = (code: string): code is PauseCause => PAUSE_CAUSES.some((cause) => cause === code);

/** Faults that may be those of the key or the URL, or those of one row. */
const REFUSALS: readonly string[] = ['platform-unauthorized', 'platform-address', 'maybe-gone'];

export const isRefusal = (code: string): boolean => REFUSALS.includes(code);

/** The backoff if the platform did not ask for a wait. */
const BOUNDS = { baseMs: 2_000, maxMs: 5 * 60_000 };

/**
 * Pauses all fetches of a process after a fault that affects every one, and then lets one through as a probe. Otherwise a
 * rejected key, a wrong URL or a platform that is down would use up the attempts of every session.
 */
export class FetchPause {
  private until = 0;
  private failures = 0;
  private probing = false;
  private code: PauseCause | null = null;
  private succeededAt = Number.NEGATIVE_INFINITY;

  /** True if a fetch may start. After a pause only one may, until it is answered. */
  mayFetch(nowMs: number): boolean {
    if (this.code === null) return true;
    if (nowMs < this.until || this.probing) return false;
    this.probing = true;
    return true;
  }

  /** Releases a probe that showed nothing about the platform. */
  releaseProbe(): void {
    this.probing = false;
  }

  /** Ends the pause, because the platform fetched a row. */
  succeeded(nowMs: number): void {
    this.succeededAt = nowMs;
    this.end();
  }

  /** Ends the pause, because a server answered. */
  end(): void {
    this.failures = 0;
    this.code = null;
    this.probing = false;
  }

  /**
   * Starts or lengthens a pause. Never shortens it.
   *
   * @param fraction a random number in [0, 1)
   * @param askedMs the wait that the platform asked for
   * @returns the end of the pause, on the clock of `nowMs`
   */
  begin(code: PauseCause, nowMs: number, fraction: number, askedMs?: number): number {
    // Fetches that were in flight when the pause started show nothing new.
    if (this.code === null || nowMs >= this.until) this.failures += 1;
    this.code = code;
    this.probing = false;
    this.until = Math.max(this.until, nowMs + (askedMs ?? backoffMs(this.failures, fraction, BOUNDS)));
    return this.until;
  }

  /** True if another fetch has succeeded since a row was refused, so that neither the key nor the URL is at fault. */
  succeededSince(refusedMs: number): boolean {
    return this.succeededAt > refusedMs;
  }
}
