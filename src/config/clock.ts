import { Injectable } from '@nestjs/common';

/** The process's clock, injected so that a test can replay time. Cross-process order uses the database's clock. */
@Injectable()
export class Clock {
  /** The wall clock. */
  now(): Date {
    return new Date();
  }

  /** Milliseconds that never decrease; only differences have a meaning. */
  monotonicMs(): number {
    return performance.now();
  }

  /** Runs `work` once after `ms` milliseconds. @returns a function that cancels it */
  after(ms: number, work: () => void): () => void {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  }
}
