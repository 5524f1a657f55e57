import { setMaxListeners } from 'node:events';
import type { SeededRandom } from '../seeded-random.js';
import type { Settings } from '../settings.js';
import { type NowMs, Timers } from '../timers.js';
import { type Delivery, eventTypeOf, type LostDelivery, type WebhookEvent } from './delivery.js';
import { postWebhook } from './post-webhook.js';

/** Statuses that acknowledge a delivery (spec, Endpoint requirements). */
const KEPT = [200, 204];

/** Sends webhooks as the platform does (spec, Events), with the faults in the settings. */
export class Deliveries {
  private log: Delivery[] = [];
  private recorded = 0;
  private readonly running = new Set<Promise<void>>();
  private readonly waiting: (() => void)[] = [];
  private readonly stop = new AbortController();
  private underWay = 0;

  /** @param settings read at each use, so that changes take effect immediately */
  constructor(
    private readonly settings: () => Settings,
    private readonly random: SeededRandom,
    private readonly nowMs: NowMs,
    private readonly timers: Timers,
  ) {
    setMaxListeners(0, this.stop.signal); // one for each delivery in flight
  }

  send(event: WebhookEvent): void {
    this.sendRaw(JSON.stringify(event));
  }

  /** Signs and sends any body, even one that the platform would never send. */
  sendRaw(body: string): Delivery {
    const delivery = this.record(body, null);
    const { webhookUrl, webhookDropRate, webhookDuplicateRate } = this.settings();
    if (webhookUrl === '') {
      delivery.state = 'unsent';
    } else if (this.random.chance(webhookDropRate)) {
      delivery.state = 'dropped';
    } else {
      this.start(delivery);
      if (this.random.chance(webhookDuplicateRate)) this.start(this.record(body, delivery.id));
    }
    return delivery;
  }

  list(): readonly Delivery[] {
    return this.log;
  }

  /** Forgets the delivered webhooks made before this moment, for runs of hours. @returns their number */
  forgetDelivered(before: number): number {
    const all = this.log.length;
    this.log = this.log.filter(({ state, createdAt }) => state !== 'delivered' || createdAt >= before);
    return all - this.log.length;
  }

  /** Redelivers every lost delivery, immediately and with all retries. @returns their number */
  redeliver(state: LostDelivery): number {
    const lost = this.log.filter((delivery) => delivery.state === state);
    for (const delivery of lost) {
      delivery.state = 'pending';
      this.start(delivery);
    }
    return lost.length;
  }

  /** Resolves when no delivery is pending. */
  async settled(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running);
  }

  /** True while a delivery is in flight or about to be sent; those that wait for a delay do not count. */
  get areUnderWay(): boolean {
    return this.underWay > 0;
  }

  /** Cancels everything that is pending. */
  close(): void {
    this.stop.abort();
    this.timers.cancelAll();
    for (const proceed of this.waiting.splice(0)) proceed();
  }

  private record(body: string, copyOf: number | null): Delivery {
    this.recorded += 1;
    const delivery: Delivery = {
      id: this.recorded,
      eventType: eventTypeOf(body),
      body,
      state: 'pending',
      copyOf,
      createdAt: this.nowMs(),
      attempts: [],
    };
    this.log.push(delivery);
    return delivery;
  }

  private start(delivery: Delivery): void {
    const { webhookDelayMs, webhookShuffleMs } = this.settings();
    const delayMs =
      this.random.between(webhookDelayMs) + (webhookShuffleMs && this.random.between([0, webhookShuffleMs]));
    const run = this.run(delivery, delayMs).finally(() => this.running.delete(run));
    this.running.add(run);
  }

  private async run(delivery: Delivery, delayMs: number): Promise<void> {
    await this.timers.sleep(delayMs);
    for (let retry = 0; !this.stop.signal.aborted; retry += 1) {
      await this.attempt(delivery);
      if (delivery.state !== 'pending') return;
      const { webhookRetries, webhookRetryBaseMs } = this.settings();
      if (retry >= webhookRetries) {
        delivery.state = 'failed';
        return;
      }
      await this.timers.sleep(webhookRetryBaseMs * 2 ** retry);
    }
  }

  private async attempt(delivery: Delivery): Promise<void> {
    await this.takePlace();
    if (this.stop.signal.aborted) return;
    const {
      webhookUrl: url,
      webhookSecret: secret,
      webhookTimeoutMs: timeoutMs,
      webhookRetryTimestamp,
    } = this.settings();
    if (url === '') {
      delivery.state = 'unsent'; // the URL was removed before this retry
      return this.givePlace();
    }
    const at = this.nowMs();
    const first = delivery.attempts[0]?.timestamp;
    const timestamp = webhookRetryTimestamp === 'same' && first ? first : String(Math.floor(at));
    const body = Buffer.from(delivery.body);
    const answer = await postWebhook({ url, secret, timeoutMs }, timestamp, body, this.stop.signal);
    delivery.attempts.push({ at, timestamp, ...answer, durationMs: this.nowMs() - at });
    if (answer.status !== null && KEPT.includes(answer.status)) delivery.state = 'delivered';
    this.givePlace();
  }

  /** Limits the deliveries in flight, so that the receiver's five seconds do not pass in this process's queue. */
  private async takePlace(): Promise<void> {
    if (this.underWay >= this.settings().webhookConcurrency) {
      await new Promise<void>((proceed) => this.waiting.push(proceed));
    } else {
      this.underWay += 1;
    }
  }

  private givePlace(): void {
    const next = this.waiting.shift();
    if (next) next();
    else this.underWay -= 1;
  }
}
