import type { Progress } from './progress-bar.js';

/** How far a refresh is, and how long the rest takes at the pace so far. */
export class RefreshPace {
  /** @param startedAt milliseconds on the clock of `progress` */
  constructor(
    private readonly total: number,
    private readonly startedAt: number,
  ) {}

  /** @param pending sessions whose turn is still to come; events that arrive meanwhile add to them */
  progress(pending: number, nowMs: number): Progress {
    const done = Math.min(this.total, Math.max(0, this.total - pending));
    const seconds = (nowMs - this.startedAt) / 1000;
    const etaSeconds = done === 0 ? null : (seconds / done) * (this.total - done);
    return { done, total: this.total, noun: 'sessions', etaSeconds };
  }
}
