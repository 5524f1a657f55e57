import { isDeepStrictEqual } from 'node:util';
import { backoff } from '../../queue/work/backoff.js';
import type { PushAnswer } from './endpoint.js';
import { afterFailure, type PauseReason } from './push-rules.js';
import { placeOf, type SubscriptionRow } from './subscription-row.js';

interface Considered {
  readonly kind: 'considered';
  readonly cursor: string;
  readonly hasMore: boolean;
  readonly isDelivered: boolean;
}

/** How the work on a subscription ended. */
export type PushOutcome =
  /** Every event up to a cursor was delivered, or excluded by its types. `isDelivered`: the last one was delivered. */
  | Considered
  /** The endpoint did not accept the next event. */
  | { readonly kind: 'failed'; readonly answer: PushAnswer }
  /** The feed no longer has the next event. */
  | { readonly kind: 'gone' }
  /** Sending is held, this process stops, or it was too slow to begin. */
  | { readonly kind: 'stopped' }
  /** The work threw an error. */
  | { readonly kind: 'broken' };

type Changes = Partial<SubscriptionRow>;

/**
 * What an outcome changes.
 *
 * | outcome      | the row is as it was taken                                           | a caller or another worker has changed it |
 * |--------------|----------------------------------------------------------------------|-------------------------------------------|
 * | `considered` | moves there, `failures` end; due now if there is more, otherwise with the next event | the same if place, address and types are; due now |
 * | `failed`     | `failures + 1`, `failing_since`; due after the backoff, or paused    | due now                                   |
 * | `gone`       | paused for `cursor-expired`                                          | due now                                   |
 * | `stopped`    | due now                                                              | due now                                   |
 * | `broken`     | `failures + 1`; due after the backoff of all rows                    | due now                                   |
 *
 * `failing_since` is the fault of the endpoint only: what breaks here neither counts towards its five days nor is reported as
 * its fault.
 *
 * @param row as it is now, locked
 * @param taken as the worker took it, or stored it last
 */
export function applyOutcome(row: SubscriptionRow, taken: SubscriptionRow, outcome: PushOutcome, now: Date): Changes {
  const { failures, failingSince } = row;
  const isSame = row.version === taken.version;
  const considered = outcome.kind === 'considered' && hasTarget(row, taken) && consideredTo(outcome, now);
  if (row.paused !== null) return considered || {};
  if (!isSame || outcome.kind === 'stopped') return { ...considered, dueAt: now };
  if (outcome.kind === 'considered') return { ...considered, dueAt: outcome.hasMore ? now : null };
  if (outcome.kind === 'gone') return { failures: 0, failingSince: null, ...pausedAt(now, 'cursor-expired') };
  if (outcome.kind === 'broken') return { failures: failures + 1, dueAt: backoff(failures + 1, now) };
  const failed = { failures: failures + 1, failingSince: failingSince ?? now };
  const { status, retryAfterMs } = outcome.answer;
  const next = afterFailure({ failures, failingSince, status, retryAfterMs, now });
  if (next.paused !== null) return { ...failed, ...pausedAt(now, next.paused) };
  return { ...failed, dueAt: new Date(now.getTime() + next.waitMs) };
}

const pausedAt = (now: Date, paused: PauseReason): Changes => ({ paused, pausedAt: now, dueAt: null });

/** A failure ends: the event that failed is delivered, or was never asked for. */
const consideredTo = ({ cursor, isDelivered }: Considered, now: Date): Changes => ({
  ...placeOf(cursor),
  ...{ failures: 0, failingSince: null },
  ...(isDelivered && { deliveredAt: now }),
});

/** False if a caller has chosen another place, or another address or types, which get the events again. */
function hasTarget(row: SubscriptionRow, taken: SubscriptionRow): boolean {
  const targetOf = ({ url, types, epoch, position }: SubscriptionRow) => [url, types, epoch, position];
  return isDeepStrictEqual(targetOf(row), targetOf(taken));
}
