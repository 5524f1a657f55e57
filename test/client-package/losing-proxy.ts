import { once } from 'node:events';
import { createServer, type IncomingMessage, request as sendRequest } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that a proxy has passed on. */
export interface Passed {
  method: string;
  path: string;
  idempotencyKey: string | undefined;
  onBehalfOf: string | undefined;
  purpose: string | undefined;
}

/** A proxy in front of the service that can lose answers. */
export interface LosingProxy {
  url: string;
  /** The requests, in order. */
  passed: Passed[];
  /** Loses the next answers: the service does its work, then the connection of the caller breaks. */
  lose(answers: number, part?: 'all' | 'end'): void;
  /** The number of lost answers. */
  lost(): number;
  /** The number of requests that wait for the service's answer. */
  waiting(): number;
  /** Sends new requests to another URL of the service. */
  lead(target: string): void;
  /** Ends the connections of all callers. */
  cut(): void;
  close(): Promise<void>;
}

/** @param target the URL of the service */
export async function startLosingProxy(target: string): Promise<LosingProxy> {
  const passed: Passed[] = [];
  let leadsTo = target;
  let losses = 0;
  let losesEnd = false;
  let lost = 0;
  let waiting = 0;
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    passed.push({ method, path: url, ...namesIn(request) });
    const upstream = sendRequest(`${leadsTo}${url}`, { method, headers, agent: false });
    upstream.on('error', () => response.destroy());
    // If the caller disconnects, so does the proxy.
    waiting += 1;
    response.on('close', () => {
      waiting -= 1;
      upstream.destroy();
    });
    upstream.on('response', async (answer) => {
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      const isLost = losses > 0;
      losses -= isLost ? 1 : 0;
      // Counted when the connection has ended, so that the caller learns of it at about the same time.
      if (isLost) response.on('close', () => (lost += 1));
      if (isLost && !losesEnd) return response.destroy();
      response.writeHead(answer.statusCode ?? 0, { ...answer.headers, 'content-length': body.length });
      if (!isLost) return response.end(body);
      response.write(body.subarray(0, body.length / 2), () => response.destroy());
    });
    upstream.on('response', (answer) => answer.on('error', () => response.destroy()));
    request.pipe(upstream);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passed,
    lose: (answers, part = 'all') => {
      losses = answers;
      losesEnd = part === 'end';
    },
    lost: () => lost,
    waiting: () => waiting,
    lead: (next) => {
      leadsTo = next;
    },
    cut: () => server.closeAllConnections(),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function namesIn({ headers }: IncomingMessage): Pick<Passed, 'idempotencyKey' | 'onBehalfOf' | 'purpose'> {
  const text = (name: string) => headers[name]?.toString();
  return {
    idempotencyKey: text('idempotency-key'),
    onBehalfOf: text('notebridge-on-behalf-of'),
    purpose: text('notebridge-purpose'),
  };
}
