import diagnostics from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import { canary, Searcher } from '../../harness/canaries.js';
import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import { ADMIN_KEY } from '../support/app.js';
import { type Collector, useCollectors } from '../support/collector.js';
import { type TestWorld, useTestWorlds } from '../support/service.js';
import { answerTo, deliver, sessionEvent, signed } from '../support/webhook-requests.js';

const newWorld = useTestWorlds();
const newCollector = useCollectors();

/** Otherwise spans are exported every five seconds. */
const SOON = { OTEL_BSP_SCHEDULE_DELAY: '100' };

const PROVIDER = canary('ProviderId');
const SESSION = '7f0e7c3c-2b57-4c6f-9f6b-000000000001';

/** A trace of the EHR's own. */
const EHR = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', parentSpanId: '00f067aa0ba902b7' };
const EHR_HEADERS = {
  traceparent: `00-${EHR.traceId}-${EHR.parentSpanId}-01`,
  tracestate: `ehr=${canary('State')}`,
  baggage: `name=${canary('Baggage')}`,
  'user-agent': canary('Agent'),
};

const [SERVER, CLIENT] = [2, 3];

async function put(service: Service, where: string, body: object, headers: Record<string, string> = {}) {
  const response = await answerTo(`${service.url}${where}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  expect([200, 202]).toContain(response.status);
}

const synced = (service: Service, where: string) =>
  until(`${where} is synced`, async () => {
    const { body } = await service.call('GET', where);
    return body.sync.state === 'synced' ? body : undefined;
  });

const provider = { email: `${canary('Provider')}@ehr.example`, firstName: canary('First'), lastName: canary('Last') };

describe('traces', () => {
  let world: TestWorld;
  let collector: Collector;
  let api: Service;
  /** Names of the headers that the platform and the collector got. */
  const headers = new Set<string>();

  beforeAll(async () => {
    diagnostics.subscribe('http.server.request.start', (message) => {
      for (const name of Object.keys((message as { request: IncomingMessage }).request.headers)) headers.add(name);
    });
    collector = await newCollector();
    world = await newWorld({
      env: {
        ...SOON,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=key-of-the-collector',
        OTEL_SERVICE_NAME: 'notebridge-under-test',
      },
    });
    api = await world.start();
  });

  it('have a span of each request, in the trace of its caller, with its statements', async () => {
    await put(api, `/v1/providers/${PROVIDER}`, provider, EHR_HEADERS);
    // A busy database causes one more.
    const request = await collector.seen(
      'the request',
      ({ name, failed }) => name === 'PUT /v1/providers/:externalId' && !failed,
    );
    expect(request).toMatchObject({ ...EHR, kind: SERVER, service: 'notebridge-under-test' });
    expect(request.attributes).toEqual({
      'http.request.method': 'PUT',
      'http.route': '/v1/providers/:externalId',
      'http.response.status_code': 202,
    });
    const statement = await collector.seen('a statement', ({ parentSpanId }) => parentSpanId === request.spanId);
    expect(statement).toMatchObject({ traceId: EHR.traceId, kind: CLIENT });
    expect(statement.name).toMatch(/^pg\.query:\w+ \w+$/);
    expect(statement.attributes).toMatchObject({ 'db.system.name': 'postgresql', 'server.port': expect.any(Number) });
    expect(collector.headers[0]).toMatchObject({ 'x-collector-key': 'key-of-the-collector' });
  });

  it('have a span of each call of the platform, which does not learn the trace', async () => {
    await synced(api, `/v1/providers/${PROVIDER}`);
    const { hostname, port } = new URL(world.simulator.url);
    const call = await collector.seen(
      'the call',
      ({ kind, attributes }) => kind === CLIENT && attributes['http.response.status_code'] === 201,
    );
    expect(call.name).toBe('POST');
    expect(call.attributes).toEqual({
      'http.request.method': 'POST',
      'http.response.status_code': 201,
      'server.address': hostname,
      'server.port': Number(port),
    });
    expect([headers.has('authorization'), headers.has('traceparent')]).toEqual([true, false]);
  });

  it('have a span of each webhook', async () => {
    await deliver(api, signed(sessionEvent(SESSION, 'SESSION_CREATED')));
    const received = await collector.seen('the webhook', ({ name }) => name === 'POST /webhooks/platform');
    expect(received.attributes).toMatchObject({ 'http.response.status_code': 204 });
  });

  it('name a request without a route by its method only', async () => {
    await fetch(`${api.url}/${canary('Path')}?q=${canary('Query')}`, { method: 'OPTIONS' });
    const { attributes } = await collector.seen('the request', ({ name }) => name === 'OPTIONS');
    expect(attributes).toEqual({ 'http.request.method': 'OPTIONS', 'http.response.status_code': 404 });
  });

  it('have no span of a probe, a scrape or a search for due work', async () => {
    for (const route of ['/health/ready', '/metrics']) await fetch(`${api.url}${route}`);
    await fetch(`${api.url}/openapi.json`);
    await collector.seen('what came after them', ({ name }) => name === 'GET /openapi.json');
    const requests = collector.spans.filter(({ kind }) => kind === SERVER).map(({ name }) => name);
    expect(requests.filter((name) => name === 'GET' || /health|metrics/.test(name))).toEqual([]);
    expect(collector.spans.filter(({ name, parentSpanId }) => name.startsWith('pg') && !parentSpanId)).toEqual([]);
  });

  it('contain no name, email, id, header, address of a request or SQL', () => {
    const [user] = world.usersOf(PROVIDER);
    const secrets = {
      platformUser: user?.userId ?? '-',
      platformSession: SESSION,
      key: ADMIN_KEY,
      column: 'external_id',
    };
    const text = collector.bodies.join('\n');
    expect(text.length).toBeGreaterThan(1_000);
    expect(new Searcher(secrets).finds(text)).toEqual([]);
  });

  it('have only attributes that docs/operations/tracing.md names', () => {
    const page = readFileSync('docs/operations/tracing.md', 'utf8');
    const named = new Set([...page.matchAll(/`([^`]+)`/g)].map(([, word]) => word));
    const used = collector.spans.flatMap(({ attributes }) => Object.keys(attributes));
    expect([...new Set(used)].filter((word) => !named.has(word))).toEqual([]);
  });
});

test('a collector that hangs delays nothing, is reported once, and the SDK is loaded', async () => {
  const collector = await newCollector('hang');
  const world = await newWorld({
    env: {
      ...SOON,
      OTEL_EXPORTER_OTLP_TIMEOUT: '500',
      OTEL_BSP_EXPORT_TIMEOUT: '500',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      NODE_OPTIONS: `--require ${path.resolve('test/support/print-packages.cjs')}`,
    },
  });
  const service = await world.start();
  await put(service, '/v1/providers/p-1', { ...provider, email: 'ada@ehr.example' });
  await synced(service, '/v1/providers/p-1');
  const reported = /traces are not taken by OTEL_EXPORTER_OTLP_ENDPOINT/;
  await collector.asked(1);
  await service.printed(reported);
  await service.call('GET', '/v1/capabilities');
  await collector.asked(2);
  expect(await service.kill('SIGTERM')).toBe(0);
  expect(service.output().split(reported)).toHaveLength(2);
  expect(service.output()).not.toMatch(/^\s+at /m);
  expect(service.output()).toMatch(/Packages: .*@opentelemetry\/sdk/);
});
