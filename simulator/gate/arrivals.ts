import { largestWindow } from './sliding-limit.js';

/** One request that arrived at the platform. */
export interface Arrival {
  /** Milliseconds since the Unix epoch. */
  at: number;
  operation: string;
  /** True if it counts towards the user-management limit. */
  limited: boolean;
  /** True if the limit accepted it. */
  accepted: boolean;
  /** HTTP status, `cut` if the connection was cut without an answer, null while the request is in progress. */
  status: number | 'cut' | null;
}

/** The answer to GET /_simulator/stats. */
export interface ArrivalStats {
  calls: Record<string, Record<string, number>>;
  total: number;
  userManagement: {
    arrivals: number;
    accepted: number;
    rateLimited: number;
    windowSeconds: number;
    /** Maximum arrivals in any sliding window: accepted ones, and all. */
    largestWindow: { accepted: number; all: number };
  };
}

/** All requests since the start or the last reset. */
export class Arrivals {
  private readonly all: Arrival[] = [];

  record(at: number, operation: string, limited: boolean): Arrival {
    const arrival: Arrival = { at, operation, limited, accepted: false, status: null };
    this.all.push(arrival);
    return arrival;
  }

  list(): readonly Arrival[] {
    return this.all;
  }

  stats(windowSeconds: number): ArrivalStats {
    const calls: ArrivalStats['calls'] = {};
    for (const { operation, status } of this.all) {
      calls[operation] ??= {};
      const byStatus = calls[operation];
      const key = String(status ?? 'under-way');
      byStatus[key] = (byStatus[key] ?? 0) + 1;
    }
    const limited = this.all.filter((arrival) => arrival.limited);
    const accepted = limited.filter((arrival) => arrival.accepted);
    const largest = (arrivals: Arrival[]) =>
      largestWindow(
        arrivals.map(({ at }) => at),
        windowSeconds * 1_000,
      );
    return {
      calls,
      total: this.all.length,
      userManagement: {
        arrivals: limited.length,
        accepted: accepted.length,
        rateLimited: limited.filter(({ status }) => status === 429).length,
        windowSeconds,
        largestWindow: { accepted: largest(accepted), all: largest(limited) },
      },
    };
  }
}
