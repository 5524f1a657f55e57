import type { FastifyRequest } from 'fastify';
import type { Clock } from '../../config/clock.js';
import type { Env } from '../../config/env.js';
import { Problem } from '../problem/problem.js';
import { preferredWait } from '../request/waiting.js';

/** How long a request may take before it counts as one that waits for something, such as the platform. */
const LONG_MS = 2_000;

/** How long a request still counts after its caller disconnects, because its handler continues. */
const ABANDONED_MS = 1_000;

/** A request in flight. */
interface InFlight {
  /** When it counts as one that waits, in monotonic milliseconds. */
  readonly waitsFromMs: number;
}

type Limits = Pick<Env, 'REQUESTS_PER_CALLER' | 'WAITING_REQUESTS_PER_CALLER'>;

/** Limits the requests that each caller has in flight in this process, so that none takes it all. */
export class RequestsInFlight {
  private readonly callers = new Map<string, Set<InFlight>>();

  constructor(
    private readonly limits: Limits,
    private readonly clock: Clock,
  ) {}

  /**
   * Counts a request until the returned function is called.
   *
   * @param waits true if it is expected to take long
   * @throws {Problem} 429 `too-many-requests`
   */
  enter(caller: string, waits: boolean): (isAnswered: boolean) => void {
    const { REQUESTS_PER_CALLER: limit, WAITING_REQUESTS_PER_CALLER: waitingLimit } = this.limits;
    const nowMs = this.clock.monotonicMs();
    const known = this.callers.get(caller) ?? new Set();
    const waiting = [...known].filter(({ waitsFromMs }) => waitsFromMs <= nowMs).length;
    const isFull = waits ? waiting >= waitingLimit : known.size - waiting >= limit;
    if (isFull || known.size >= limit + waitingLimit) {
      const detail = 'This caller has too many requests in flight. Wait for the answers, then send this request again.';
      throw new Problem('too-many-requests', detail, { retryAfterSeconds: 1 });
    }
    const request = { waitsFromMs: waits ? nowMs : nowMs + LONG_MS };
    this.callers.set(caller, known.add(request));
    const leave = () => {
      known.delete(request);
      if (known.size === 0 && this.callers.get(caller) === known) this.callers.delete(caller);
    };
    return (isAnswered) => {
      if (isAnswered) leave();
      else this.clock.after(ABANDONED_MS, leave);
    };
  }
}

/** True for uploads, event streams and requests with `Prefer: wait`, which use little of the process. */
export function isWaiting({ headers, routeOptions }: FastifyRequest): boolean {
  const { body } = routeOptions.config.edge ?? {};
  if (body === 'stream' || body === 'multipart' || (preferredWait(headers.prefer) ?? 0) > 0) return true;
  return headers.accept?.includes('text/event-stream') ?? false;
}
