import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { SeededRandom } from '../simulator/seeded-random.js';
import { signWebhook } from '../src/webhooks/receive/webhook-signature.js';

/** Timeout for one answer (specification, Limits). */
const ANSWER_MS = 5_000;

/** Maximum requests in flight; more would only measure the delay of this process. */
const MAX_IN_FLIGHT = 64;

/** Delays before the 5 retries (spec, Limits: exponential backoff; its base is not shown). */
const RETRY_MS = [1_000, 2_000, 4_000, 8_000, 16_000];

/** The outcome of one delivery. */
export interface Sent {
  body: string;
  /** In hex, one per attempt, because a retry may carry a new timestamp. */
  signatures: string[];
  acknowledged: boolean;
  tries: number;
  /** Milliseconds of the slowest answer, refused and broken connections included. */
  slowest: number;
}

/** Sends webhooks as the platform does: signed, 5 seconds for an answer, 5 retries with growing delays. */
export class WebhookSender {
  private readonly agent = new Agent({ keepAlive: true });
  private readonly queue: (() => void)[] = [];
  private inFlight = 0;

  /**
   * @param secret signs the deliveries
   * @param ports of the receivers, chosen as by a load balancer
   */
  constructor(
    private readonly secret: () => string,
    private readonly ports: readonly number[],
    private readonly random: SeededRandom,
  ) {}

  /** @param timestamp with the same body as before, an exact repeat */
  async deliver(body: string, timestamp = String(Date.now())): Promise<Sent> {
    const sent: Sent = { body, signatures: [], acknowledged: false, tries: 0, slowest: 0 };
    for (const wait of [0, ...RETRY_MS]) {
      if (wait > 0) await delay(wait);
      if (wait > 0 && this.random.below(2) === 0) timestamp = String(Date.now());
      const signature = signWebhook(this.secret(), timestamp, Buffer.from(body));
      if (sent.signatures.at(-1) !== signature) sent.signatures.push(signature);
      const { status, ms } = await this.inTurn(() => this.post(body, timestamp, signature));
      sent.tries += 1;
      sent.slowest = Math.max(sent.slowest, ms);
      sent.acknowledged = status === 204;
      if (sent.acknowledged) break;
    }
    return sent;
  }

  close(): void {
    this.agent.destroy();
  }

  private async inTurn(post: () => Promise<number>): Promise<{ status: number; ms: number }> {
    if (this.inFlight === MAX_IN_FLIGHT) await new Promise<void>((resolve) => this.queue.push(resolve));
    else this.inFlight += 1;
    const start = performance.now();
    const status = await post();
    const ms = performance.now() - start;
    const next = this.queue.shift();
    if (next) next();
    else this.inFlight -= 1;
    return { status, ms };
  }

  /** A load balancer skips receivers that refuse the connection. */
  private async post(body: string, timestamp: string, signature: string): Promise<number> {
    const first = this.random.below(this.ports.length);
    for (const offset of this.ports.keys()) {
      const port = this.ports[(first + offset) % this.ports.length] ?? 0;
      const status = await this.postTo(port, body, timestamp, signature);
      if (status !== 'refused') return status;
    }
    return 0;
  }

  private postTo(port: number, body: string, timestamp: string, signature: string): Promise<number | 'refused'> {
    return new Promise((resolve) => {
      const call = request({
        agent: this.agent,
        host: '127.0.0.1',
        port,
        path: '/webhooks/platform',
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          'user-agent': 'Service Webhook',
          'x-service-signature': signature,
          'x-service-timestamp': timestamp,
        },
      });
      call.on('response', (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      const timeout = setTimeout(() => call.destroy(), ANSWER_MS);
      call.on('close', () => clearTimeout(timeout));
      call.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED' ? 'refused' : 0));
      call.end(body);
    });
  }
}
