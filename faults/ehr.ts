import { setTimeout as delay } from 'node:timers/promises';
import type { Answer, CallOptions, Service } from '../harness/service.js';
import type { SeededRandom } from '../simulator/seeded-random.js';
import type { Counts } from './counts.js';

/** Pause between two attempts. */
const RETRY_MS = 200;

interface RetryOptions {
  /** Maximum attempts until a complete answer below 500; unlimited by default. */
  readonly tries?: number;
  /** The one status of 500 or above that is an answer, and not retried. */
  readonly final?: number;
}

/** Calls the service as an EHR behind a load balancer: retries a request without an answer, at any process. */
export class Ehr {
  constructor(
    private readonly addresses: () => readonly string[],
    private readonly adminKey: string,
    private readonly random: SeededRandom,
    private readonly counts: Counts,
  ) {}

  /** @returns undefined if every attempt failed */
  async call<Body>(
    method: string,
    path: string,
    { body, wait, key = this.adminKey, idempotencyKey }: CallOptions = {},
    { tries = Number.POSITIVE_INFINITY, final }: RetryOptions = {},
  ): Promise<Answer<Body> | undefined> {
    this.counts.requests += 1;
    const isForm = body instanceof FormData;
    const headers = {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && !isForm && { 'content-type': 'application/json' }),
      ...(wait !== undefined && { prefer: `wait=${wait}` }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    };
    for (let done = 0; done < tries; done += 1) {
      if (done > 0) await delay(RETRY_MS);
      const addresses = this.addresses();
      const address = addresses[this.random.below(addresses.length)];
      const answer = await fetch(`${address}${path}`, {
        method,
        headers,
        body: body === undefined || isForm ? body : JSON.stringify(body),
      })
        .then(async (response) => ({ status: response.status, headers: response.headers, text: await response.text() }))
        .catch(() => undefined);
      const isFault = answer && answer.status >= 500 && answer.status !== final;
      if (!answer || isFault || isStillRunning(answer)) continue;
      return {
        status: answer.status,
        headers: answer.headers,
        body: (answer.text ? JSON.parse(answer.text) : undefined) as Body,
      };
    }
    return undefined;
  }
}

/** True if the first request with this Idempotency-Key is still in progress, or was killed with its process. */
const isStillRunning = ({ status, text }: { status: number; text: string }): boolean =>
  status === 409 && text.includes('idempotency-in-progress');

/** All items of a list of the API. */
export async function everyItem<Item>(service: Service, path: string): Promise<Item[]> {
  const items: Item[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query: string = `?limit=200${cursor && `&cursor=${encodeURIComponent(cursor)}`}`;
    const { body }: Answer<{ items: Item[]; nextCursor: string | null }> = await service.call('GET', `${path}${query}`);
    items.push(...body.items);
    cursor = body.nextCursor;
  }
  return items;
}
