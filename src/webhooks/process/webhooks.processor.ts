import { setTimeout as delay } from 'node:timers/promises';
import { Processor } from '@nestjs/bullmq';
import type { OnModuleInit } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { connectionShares } from '../../database/connect/connection-shares.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { retryUntilStored } from '../../database/retries.js';
import { isOutOfResources } from '../../errors/database-fault.js';
import { errorTrace, failureCode } from '../../errors/error-trace.js';
import { Metrics } from '../../monitoring/metrics.js';
import { Contract } from '../../platform/contract/contract.js';
import { backoffMs } from '../../queue/work/backoff.js';
import { Feeder } from '../../queue/work/feeder.js';
import { Host, WORKER } from '../../queue/work/host.js';
import { WorkQueues } from '../../queue/work/work-queues.js';
import { WorkStore } from '../../queue/work/work-store.js';
import { MissingDataKey } from '../../vault/unreadable-value.js';
import { Vault } from '../../vault/vault.js';
import { bodyPlace } from '../receive/inbox.writer.js';
import { parseEvent, type UnderstoodEvent } from '../receive/platform-event.js';
import { EventHandlers, type Handled } from './event-handlers.js';
import {
  FIRST_PLACE,
  HandledElsewhere,
  InboxRepository,
  type Outcome,
  type Place,
  type StartedDelivery,
  WAITING_SUBJECTS,
} from './inbox.repository.js';

/** Subjects that a process works on at a time, and the connections that they leave to requests. */
const CONCURRENCY = 8;
const LEFT_CONNECTIONS = 1;

/** Deliveries in one job. Then its subject waits behind the others. */
const MAX_PER_JOB = 100;

/** Failed attempts after which a delivery is dead: about two minutes, by the backoff. */
export const MAX_ATTEMPTS = 8;
const BACKOFF = { baseMs: 1_000, maxMs: 60_000 };

/** Starts without an outcome after which a delivery is dead, because it ends the processes that handle it. */
const MAX_LOST = 3;

/** How long a delivery waits whose data key is missing. An operator must add the key, so it is no attempt. */
const KEY_WAIT_MS = 30_000;

/** How long a delivery waits whose handler returned `waiting`. */
const WAIT_MS = 1_000;

/** The outcome of each result of a handler. */
const OUTCOMES: Record<Handled, Outcome> = {
  processed: { state: 'processed' },
  waiting: { state: 'received', reason: 'waiting', retryInMs: WAIT_MS },
};

/** An outcome, and true if it was not stored, because its delivery was repeated, replayed or handled meanwhile. */
type Settled = Outcome & { isOutdated: boolean };

/** Passes deliveries to the handlers of features. A job names a subject, so no two deliveries of one are handled at a time. */
@Processor('webhooks', WORKER)
export class WebhooksProcessor extends Host implements OnModuleInit {
  private readonly settled;

  constructor(
    store: WorkStore,
    queues: WorkQueues,
    metrics: Metrics,
    env: Env,
    private readonly feeder: Feeder,
    private readonly prisma: PrismaService,
    private readonly inbox: InboxRepository,
    private readonly handlers: EventHandlers,
    private readonly vault: Vault,
    private readonly contract: Contract,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {
    const concurrency = Math.min(CONCURRENCY, connectionShares(env).usual - LEFT_CONNECTIONS);
    super(store, queues.of('webhooks'), { concurrency });
    this.settled = metrics.counter('webhook_settled_total', 'Outcomes of attempts to process a delivery', ['state']);
    metrics.gauge('webhook_inbox_open', 'Deliveries that still need work', [], async (gauge) =>
      gauge.set(await inbox.countPending()),
    );
    metrics.gauge('webhook_inbox_dead', 'Dead letters: deliveries that need a replay', [], async (gauge) =>
      gauge.set(await inbox.countDead()),
    );
  }

  onModuleInit(): void {
    this.feeder.feed({ queue: this.queue, due: () => this.inbox.dueSubjects(), length: WAITING_SUBJECTS });
  }

  /**
   * Handles the pending deliveries of a subject in the order of their timestamps. One that failed or waits holds back the
   * others. One that was repeated meanwhile is due again, after the others.
   */
  protected async work(subject: string): Promise<boolean> {
    let place = FIRST_PLACE;
    let isDueAgain = false;
    for (let handled = 0; handled < MAX_PER_JOB && !this.shutdown.signal.aborted; handled += 1) {
      const delivery = await this.start(subject, place);
      if (!delivery) {
        await this.inbox.holdBack(subject);
        return isDueAgain;
      }
      const { state, retryInMs, isOutdated } = await this.settle(delivery);
      if (state !== 'received') this.settled.inc({ state });
      isDueAgain ||= isOutdated;
      if (!delivery.hasMore) return isDueAgain;
      if (retryInMs === undefined || isOutdated) place = delivery;
    }
    return true;
  }

  /** The feeder adds the subject again. */
  protected async postpone(): Promise<void> {}

  /** Its id is a text of the platform, which the log does not show. */
  protected override logged(): object {
    return {};
  }

  private async start(subject: string, place: Place): Promise<StartedDelivery | undefined> {
    try {
      return await this.inbox.start(subject, place);
    } catch (error) {
      await this.stored(() => this.inbox.forgetStarts(subject));
      throw error;
    }
  }

  private async settle(delivery: StartedDelivery): Promise<Settled> {
    try {
      const found = this.open(delivery);
      if ('event' in found) return await this.prisma.transaction((tx) => this.handle(tx, delivery, found));
      return { ...found, isOutdated: await this.inbox.end(delivery, found) };
    } catch (error) {
      if (error instanceof HandledElsewhere) return { state: 'received', isOutdated: true };
      const outcome = this.failure(delivery, error);
      return { ...outcome, isOutdated: await this.stored(() => this.inbox.end(delivery, outcome)) };
    }
  }

  /** Stores that this process lives, which only it knows, for as long as it does. */
  private stored<T>(store: () => Promise<T>): Promise<T> {
    const pause = (ms: number) => delay(ms, undefined, { signal: this.shutdown.signal });
    return retryUntilStored(store, this.clock, pause);
  }

  /** The event of a delivery, or the outcome of a delivery without one. */
  private open(delivery: StartedDelivery): UnderstoodEvent | Outcome {
    const lost = delivery.starts - 1;
    if (lost >= MAX_LOST) {
      return this.warned(delivery, { state: 'dead', reason: 'no-outcome', attempts: delivery.attempts + lost });
    }
    try {
      const place = bodyPlace(Buffer.from(delivery.signature).toString('hex'));
      const parsed = parseEvent(this.vault.openBytes(place, Buffer.from(delivery.body)), this.contract.events);
      return 'event' in parsed ? parsed : { ...parsed, state: 'not-understood' };
    } catch (error) {
      if (error instanceof MissingDataKey) return { state: 'failed', reason: 'sealed', retryInMs: KEY_WAIT_MS };
      return this.failure(delivery, error, 'sealed');
    }
  }

  private async handle(tx: Tx, delivery: StartedDelivery, { event, subject }: UnderstoodEvent): Promise<Settled> {
    const { id, receivedAt, waitingSince, repeats, handled: earlier } = delivery;
    const known = { deliveryId: String(id), receivedAt, waitingSince, news: repeats + 1 - earlier };
    const handled = await this.handlers.of(event.eventType).handle({ ...event, ...known }, tx);
    const outcome = { ...OUTCOMES[handled], eventType: event.eventType, ...(subject !== null && { subject }) };
    return { ...outcome, isOutdated: await this.inbox.end(delivery, outcome, tx) };
  }

  private failure(delivery: StartedDelivery, error: unknown, reason: string = failureCode(error)): Outcome {
    // A database without resources fails every delivery.
    const attempts = delivery.attempts + (isOutOfResources(error) ? 0 : 1);
    const next = afterFailure(attempts, this.random.fraction());
    return this.warned(delivery, { ...next, reason, attempts }, errorTrace(error));
  }

  private warned({ id }: StartedDelivery, outcome: Outcome, trace = {}): Outcome {
    this.log.warn({ msg: 'a webhook delivery was not processed', delivery: String(id), ...outcome, ...trace });
    return outcome;
  }
}

/** The state after this many failed attempts. @param fraction a random number in [0, 1) */
export function afterFailure(attempts: number, fraction: number): Pick<Outcome, 'state' | 'retryInMs'> {
  if (attempts >= MAX_ATTEMPTS) return { state: 'dead' };
  return { state: 'failed', retryInMs: backoffMs(attempts, fraction, BACKOFF) };
}
