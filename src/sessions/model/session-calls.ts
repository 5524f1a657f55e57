import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Database } from '../../database/database.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import type { OperationName } from '../../platform/contract/operations.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import type { Lease } from '../../queue/due-rows/lease.js';

/** Says that a call which has begun ends now, in an error if there is one. @returns what records it, then or later */
type EndCall = (error?: unknown) => () => Promise<void>;

/** The index by which one attempt to create a session is one call. */
const OF_ATTEMPT = '(session, attempt) WHERE attempt IS NOT NULL';

/**
 * The history of the calls to the platform that ask for a session, change it, or keep it as the platform has it; a reader's
 * look at a recording's address is in the audit trail alone. It stands in no way: a call that can't be recorded
 * is logged, and its answer stored.
 */
@Injectable()
export class SessionCalls {
  private readonly log = new Logger(SessionCalls.name);

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Makes a call and records what it came to. @param session ours; null where it is not known yet */
  async made<T>(session: string | null, operation: OperationName, call: () => Promise<T>): Promise<T> {
    if (session === null) return call();
    const end = this.begin(session, operation);
    try {
      const answer = await call();
      await end()();
      return answer;
    } catch (error) {
      await end(error)();
      throw error;
    }
  }

  /**
   * For a call whose outcome is to be stored before it is recorded.
   *
   * @param session ours
   * @param attempt number of the lease under which a session is created: the call replaces what says that it was lost
   */
  begin(session: string, operation: OperationName, attempt: number | null = null): EndCall {
    const begunMs = this.clock.monotonicMs();
    const sinceMs = () => Math.round(this.clock.monotonicMs() - begunMs);
    return (error) => {
      const durationMs = sinceMs();
      // By then the session may be another's: two records of it became one.
      return () =>
        this.record(
          `INSERT INTO session_calls (session, operation, begun_at, duration_ms, outcome, status, attempt)
           VALUES (coalesce((SELECT session FROM session_aliases WHERE id = $1::uuid), $1::uuid), $2,
             clock_timestamp() - $3::int * interval '1 millisecond', $4, $5, $6, $7)
           ON CONFLICT ${OF_ATTEMPT} DO UPDATE SET begun_at = excluded.begun_at, duration_ms = excluded.duration_ms,
             outcome = excluded.outcome, status = excluded.status WHERE session_calls.outcome = 'lost'`,
          [session, operation, sinceMs(), durationMs, ...outcomeOf(error), attempt],
        );
    };
  }

  /**
   * Records that an attempt to create a session was lost: its process ended, or had no way to the database for long. One
   * whose end is on record is not.
   */
  lostCreate({ key, no }: Pick<Lease, 'key' | 'no'>): Promise<void> {
    return this.record(
      `INSERT INTO session_calls (session, operation, begun_at, outcome, attempt)
       SELECT session, 'createSession', attempted_at, 'lost', lease_no FROM session_requests
       WHERE session = $1 AND lease_no = $2 AND attempted_at IS NOT NULL
       ON CONFLICT ${OF_ATTEMPT} DO NOTHING`,
      [key, no],
    );
  }

  private async record(statement: string, values: unknown[]): Promise<void> {
    await this.database.pool.query(statement, values).catch((error: unknown) => {
      this.log.warn({ msg: 'a call for a session is not in its history', ...errorTrace(error) });
    });
  }
}

function outcomeOf(error: unknown): [outcome: string, status: number | null] {
  if (error === undefined) return ['answered', null];
  return error instanceof PlatformError ? [error.kind, error.status ?? null] : ['internal', null];
}
