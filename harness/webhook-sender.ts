import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { SeededRandom } from '../simulator/seeded-random.js';
import { signWebhook } from '../src/platform/webhook-signature.js';

/** The sender's patience with one answer, in milliseconds (spec, Limits). */
const ANSWER_MS = 5_000;

/** Requests under way at once; more would only measure how late this process itself is. */
const UNDER_WAY = 64;

/** Delays before the 5 retries (spec, Limits: exponential backoff; its base is not shown). */
const RETRY_MS = [1_000, 2_000, 4_000, 8_000, 16_000];

/** What became of one delivery. */
export interface Sent {
  body: string;
  /** Of every try, in hex: a retry may carry a fresh timestamp. */
  signatures: string[];
  acknowledged: boolean;
  tries: number;
  /** Milliseconds of the slowest answer; a refused or broken connection counts until it was known. */
  slowest: number;
}

/** Sends as the platform does: signed, 5 seconds for an answer, 5 retries with growing delays. */
export class WebhookSender {
  private readonly agent = new Agent({ keepAlive: true });
  private readonly queue: (() => void)[] = [];
  private underWay = 0;

  /**
   * @param secret that signs whatever is sent from now on
   * @param ports of the receivers, behind what would be a load balancer
   */
  constructor(
    private readonly secret: () => string,
    private readonly ports: readonly number[],
    private readonly random: SeededRandom,
  ) {}

  async deliver(body: string): Promise<Sent> {
    const sent: Sent = { body, signatures: [], acknowledged: false, tries: 0, slowest: 0 };
    let timestamp = String(Date.now());
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
    if (this.underWay === UNDER_WAY) await new Promise<void>((resolve) => this.queue.push(resolve));
    else this.underWay += 1;
    const start = performance.now();
    const status = await post();
    const ms = performance.now() - start;
    const next = this.queue.shift();
    if (next) next();
    else this.underWay -= 1;
    return { status, ms };
  }

  /** A load balancer passes over receivers that refuse the connection. */
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
      const patience = setTimeout(() => call.destroy(), ANSWER_MS);
      call.on('close', () => clearTimeout(patience));
      call.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED' ? 'refused' : 0));
      call.end(body);
    });
  }
}
