import { setTimeout as delay } from 'node:timers/promises';
import type { Answer, CallOptions, Service } from '../harness/service.js';
import type { SeededRandom } from '../simulator/seeded-random.js';
import type { Counts } from './counts.js';

/** Milliseconds between two tries. */
const AGAIN_MS = 200;

interface Patience {
  /** Tries, until an answer comes that is neither broken off nor a fault of the service; no end unless told. */
  readonly tries?: number;
}

/** Speaks to the service as an EHR behind a load balancer does: what got no answer is asked again, at any process. */
export class Ehr {
  constructor(
    private readonly addresses: () => readonly string[],
    private readonly adminKey: string,
    private readonly random: SeededRandom,
    private readonly counts: Counts,
  ) {}

  /** @returns undefined when every try was in vain */
  async call<Body>(
    method: string,
    path: string,
    { body, wait, key = this.adminKey, idempotencyKey }: CallOptions = {},
    { tries = Number.POSITIVE_INFINITY }: Patience = {},
  ): Promise<Answer<Body> | undefined> {
    this.counts.requests += 1;
    const headers = {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(wait !== undefined && { prefer: `wait=${wait}` }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    };
    for (let done = 0; done < tries; done += 1) {
      if (done > 0) await delay(AGAIN_MS);
      const addresses = this.addresses();
      const address = addresses[this.random.below(addresses.length)];
      const answer = await fetch(`${address}${path}`, {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
      })
        .then(async (response) => ({ status: response.status, headers: response.headers, text: await response.text() }))
        .catch(() => undefined);
      if (!answer || answer.status >= 500 || isStillRunning(answer)) continue;
      return {
        status: answer.status,
        headers: answer.headers,
        body: (answer.text ? JSON.parse(answer.text) : undefined) as Body,
      };
    }
    return undefined;
  }
}

/** The first request with this Idempotency-Key has not been answered yet, or its process was killed with it. */
const isStillRunning = ({ status, text }: { status: number; text: string }): boolean =>
  status === 409 && text.includes('idempotency-in-progress');

/** Every item behind a list of one process. */
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
