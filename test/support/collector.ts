import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { until } from '../../harness/until.js';

/** A span in OTLP's JSON format. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly failed: boolean;
  /** Attributes of the resource. */
  readonly service: string;
}

type Value = { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean };
type Attributes = { key: string; value: Value }[];
interface Export {
  resourceSpans: {
    resource: { attributes: Attributes };
    scopeSpans: {
      spans: (Omit<CollectedSpan, 'attributes'> & {
        attributes?: Attributes;
        status?: { code?: number };
      })[];
    }[];
  }[];
}

/** The status of a collector's answers, or `hang` for no answer. */
type Manner = number | 'hang';

/** An OTLP collector on loopback. */
export interface Collector {
  readonly url: string;
  readonly spans: CollectedSpan[];
  /** All received bodies, as text. */
  readonly bodies: string[];
  readonly headers: Record<string, string | string[] | undefined>[];
  /** Waits for a span. */
  seen(what: string, fits: (span: CollectedSpan) => boolean): Promise<CollectedSpan>;
  /** Waits for this many requests. */
  asked(times: number): Promise<unknown>;
}

/** Call it once per suite: the returned function starts collectors, which end with the suite. */
export function useCollectors(): (manner?: Manner) => Promise<Collector> {
  const closing: (() => void)[] = [];
  afterAll(() => {
    for (const close of closing) close();
  });
  return async (manner = 200) => {
    const spans: CollectedSpan[] = [];
    const bodies: string[] = [];
    const headers: Collector['headers'] = [];
    const server = createServer(async (request, response) => {
      const body = (await json(request)) as Export;
      headers.push(request.headers);
      bodies.push(JSON.stringify(body));
      if (manner === 'hang') return;
      if (request.url === '/v1/traces') spans.push(...read(body));
      response.writeHead(request.url === '/v1/traces' ? manner : 404, { 'content-type': 'application/json' }).end('{}');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    closing.push(() => {
      server.close();
      server.closeAllConnections();
    });
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      spans,
      bodies,
      headers,
      seen: (what, fits) => until(`the collector has ${what}`, async () => spans.find(fits)),
      asked: (times) => until(`the collector got ${times} requests`, async () => bodies.length >= times),
    };
  };
}

function read({ resourceSpans }: Export): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(valuesOf(resource.attributes)['service.name']);
    return scopeSpans.flatMap(({ spans }) =>
      spans.map(({ attributes = [], status, ...span }) => ({
        ...span,
        attributes: valuesOf(attributes),
        failed: status?.code === 2,
        service,
      })),
    );
  });
}

function valuesOf(attributes: Attributes): CollectedSpan['attributes'] {
  const plain = ({ stringValue, intValue, doubleValue, boolValue }: Value) =>
    stringValue ?? (intValue === undefined ? (doubleValue ?? boolValue ?? '') : Number(intValue));
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]));
}
