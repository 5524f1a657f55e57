import { largestWindow } from './sliding-limit.js';

/** One request as it arrived at the platform. */
export interface Arrival {
  /** Milliseconds since the Unix epoch. */
  at: number;
  operation: string;
  /** Whether it counts towards the user-management limit. */
  limited: boolean;
  /** Whether it took a place in the limit. */
  accepted: boolean;
  /** HTTP status, `cut` when the connection was cut instead of an answer, null while it is under way. */
  status: number | 'cut' | null;
}

/** What GET /_simulator/stats answers. */
export interface ArrivalStats {
  calls: Record<string, Record<string, number>>;
  total: number;
  userManagement: {
    arrivals: number;
    accepted: number;
    rateLimited: number;
    windowSeconds: number;
    /** The most arrivals in any sliding window: of those accepted, and of all. */
    largestWindow: { accepted: number; all: number };
  };
}

/** Every request since the start or the last reset. */
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
