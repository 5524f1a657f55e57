import { readFileSync } from 'node:fs';
import path from 'node:path';
import { canary, Searcher } from '../../harness/canaries.js';
import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import type { SimulatedSession } from '../../simulator/sessions/session.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from '../support/app.js';
import { type CollectedSpan, type Collector, useCollectors } from '../support/collector.js';
import { type TestWorld, useTestWorlds } from '../support/service.js';
import { answerTo, deliver, sessionEvent, signed } from '../support/webhook-requests.js';

const newWorld = useTestWorlds();
const newCollector = useCollectors();

/** Otherwise spans are exported every five seconds. */
const SOON = { OTEL_BSP_SCHEDULE_DELAY: '100' };

const PROVIDER = canary('ProviderId');
const CLIENT = canary('ClientId');

/** A trace of the EHR's own, as its parts and as the header. */
const EHR = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' };
const EHR_HEADER = `00-${EHR.traceId}-${EHR.spanId}-01`;

/** The names of a span and of its ancestors, which may arrive with a later export. */
async function pathOf(collector: Collector, { name, parentSpanId }: CollectedSpan): Promise<string[]> {
  if (!parentSpanId || parentSpanId === EHR.spanId) return [name];
  const parent = await collector.seen(`what is above ${name}`, ({ spanId }) => spanId === parentSpanId);
  return [name, ...(await pathOf(collector, parent))];
}

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

  beforeAll(async () => {
    collector = await newCollector();
    world = await newWorld({
      // The platform waits for a webhook even on a slow machine.
      platform: { webhookSecret: WEBHOOK_SECRET, stepMs: 0, processingEvents: false, webhookTimeoutMs: 60_000 },
      env: {
        ...SOON,
        PLATFORM_TIMEOUT_SECONDS: '60',
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=key-of-the-collector',
        OTEL_SERVICE_NAME: 'notebridge-under-test',
      },
    });
    api = await world.start();
    const { state } = world.simulator;
    state.settings = { ...state.settings, webhookUrl: `${api.url}/webhooks/platform` };
  });

  it('lead from a change by the EHR to each call of the platform, in its trace', async () => {
    await put(api, `/v1/providers/${PROVIDER}`, provider, { traceparent: EHR_HEADER });
    await synced(api, `/v1/providers/${PROVIDER}`);
    // A busy database causes one more.
    const request = await collector.seen(
      'the request',
      ({ name, failed }) => name === 'PUT /v1/providers/:externalId' && !failed,
    );
    // A grant that a busy machine left unused has a span without a status.
    const create = await collector.seen(
      'the call',
      ({ name, attributes }) => name === 'createProvider' && attributes['http.response.status_code'] === 201,
    );
    expect(request).toMatchObject({ ...EHR, spanId: request.spanId, parentSpanId: EHR.spanId, kind: 2 });
    expect(request.attributes).toMatchObject({ 'http.request.method': 'PUT', 'http.response.status_code': 202 });
    expect(create).toMatchObject({ traceId: EHR.traceId, kind: 3, service: 'notebridge-under-test' });
    const work = await collector.seen('the work', ({ spanId }) => spanId === create.parentSpanId);
    expect(await pathOf(collector, create)).toEqual(['createProvider', 'process people', request.name]);
    expect(work.attributes).toMatchObject({
      'notebridge.operation': 'createProvider',
      'notebridge.outcome': 'created',
      'notebridge.state': 'synced',
      // A grant that a busy machine left unused is one more attempt.
      'notebridge.attempt': expect.any(Number),
      'notebridge.waited_ms': expect.any(Number),
    });
    const check = await collector.seen('the check', ({ name }) => name === 'checkUser');
    expect(check.traceId).toBe(EHR.traceId);
    expect(collector.headers[0]).toMatchObject({ 'x-collector-key': 'key-of-the-collector' });
    expect(await world.sql('SELECT FROM people WHERE traceparent IS NOT NULL')).toEqual([]);
  });

  it('lead from a webhook over the inbox to the fetch and the stored note', async () => {
    await put(api, `/v1/clients/${CLIENT}`, {
      firstName: canary('Given'),
      lastName: canary('Family'),
      providers: [PROVIDER],
    });
    const { platformUserId: clientUser } = await synced(api, `/v1/clients/${CLIENT}`);
    const [user] = world.usersOf(PROVIDER);
    const session = newSession(user?.userId ?? '', clientUser ?? '');
    while (session.nextStep) takeStep(world.simulator.state, session);
    const stored = await collector.seen(
      'the note',
      ({ attributes }) => attributes['notebridge.notes_changed'] === true,
    );
    expect(await pathOf(collector, stored)).toEqual([
      'store sessions',
      'process sessions',
      'process webhook',
      'POST /webhooks/platform',
    ]);
    const { traceId } = stored;
    const within = (name: string) => collector.seen(name, (span) => span.name === name && span.traceId === traceId);
    const received = await within('POST /webhooks/platform');
    expect(received.attributes).toMatchObject({ 'http.response.status_code': 204 });
    expect(received.parentSpanId).toBeUndefined();
    const processed = await within('process webhook');
    expect(processed.attributes).toMatchObject({ 'notebridge.outcome': 'processed', 'notebridge.attempt': 1 });
    const call = await within('getSession');
    expect((await pathOf(collector, call)).slice(0, 2)).toEqual(['getSession', 'process sessions']);
    const [row] = await world.sql<{ id: string }>('SELECT id FROM sessions');
    for (const span of [processed, await within('process sessions')]) {
      expect(span.attributes['notebridge.session']).toBe(row?.id);
    }
    await until('no trace is left to be joined', async () => {
      const [left] = await world.sql(`SELECT FROM sessions WHERE traceparents <> '{}'`);
      return left === undefined;
    });
  });

  it('continue the newest of several events and link the others', async () => {
    const sessionId = '7f0e7c3c-2b57-4c6f-9f6b-000000000001';
    // The next fetch waits after a fault until all three events are there.
    await world.sql(`INSERT INTO sessions (id, shown_id, session_id, state, due_at, fault, failures)
      SELECT id, id, '${sessionId}', 'Processing', clock_timestamp() + interval '1 hour', 'internal', 1 FROM gen_random_uuid() AS id`);
    const types = ['SESSION_CREATED', 'SESSION_PROCESSING_STARTED', 'SESSION_PROCESSING_COMPLETED'];
    for (const [before, type] of types.entries()) {
      await deliver(api, signed(sessionEvent(sessionId, type)));
      await until('the event is handled', async () => (await eventsOf(sessionId)).length > before);
    }
    await world.sql(`UPDATE sessions SET due_at = clock_timestamp() WHERE session_id = '${sessionId}'`);
    const [{ id } = { id: '' }] = await world.sql<{ id: string }>(
      `SELECT id FROM sessions WHERE session_id = '${sessionId}'`,
    );
    const fetched = await collector.seen(
      'the fetch',
      ({ name, attributes }) => name === 'process sessions' && attributes['notebridge.session'] === id,
    );
    const [newest, ...others] = (await eventsOf(sessionId)).reverse();
    expect(fetched).toMatchObject({ traceId: newest?.traceId, parentSpanId: newest?.spanId, failed: true });
    expect(fetched.attributes).toMatchObject({ 'notebridge.attempt': 2, 'error.type': 'maybe-gone' });
    expect(fetched.links).toMatchObject(others.map(({ traceId, spanId }) => ({ traceId, spanId })));
  });

  async function eventsOf(sessionId: string): Promise<CollectedSpan[]> {
    const [row] = await world.sql<{ id: string }>(`SELECT id FROM sessions WHERE session_id = '${sessionId}'`);
    return collector.spans
      .filter(({ name, attributes }) => name === 'process webhook' && attributes['notebridge.session'] === row?.id)
      .sort(
        (one, other) => Number(one.attributes['notebridge.delivery']) - Number(other.attributes['notebridge.delivery']),
      );
  }

  it('are not started by requests without a key', async () => {
    const traceId = 'f'.repeat(32);
    const traceparent = `00-${traceId}-${'e'.repeat(16)}-01`;
    await fetch(`${api.url}/v1/clients/nobody`, { headers: { traceparent } });
    await fetch(`${api.url}/webhooks/platform`, { method: 'POST', body: '{}', headers: { traceparent } });
    await fetch(`${api.url}/health/ready`, { headers: { traceparent } });
    const event = signed(sessionEvent('7f0e7c3c-2b57-4c6f-9f6b-000000000002', 'SESSION_CREATED'));
    await deliver(api, { ...event, headers: { ...event.headers, traceparent } });
    await api.call('GET', '/v1/capabilities');
    await collector.seen('what came after them', ({ name }) => name === 'GET /v1/capabilities');
    expect(collector.spans.filter((span) => span.traceId === traceId)).toEqual([]);
  });

  it('show a caller that hangs up, and no failure', async () => {
    const hangUp = new AbortController();
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, accept: 'text/event-stream' };
    const stream = await fetch(`${api.url}/v1/overview`, { headers, signal: hangUp.signal });
    expect(stream.headers.get('content-type')).toContain('text/event-stream');
    hangUp.abort();
    const span = await collector.seen('the stream', ({ name }) => name === 'GET /v1/overview');
    expect(span.failed).toBe(false);
    expect(span.attributes).toMatchObject({ 'notebridge.cut': true, 'http.response.status_code': 200 });
  });

  it('contain no name, email, external id or note', async () => {
    const [user] = world.usersOf(PROVIDER);
    const notes = world.simulator.state.sessions.list().map(({ sessionId }) => sessionId);
    const secrets = { platformUser: user?.userId ?? '-', platformSession: notes[0] ?? '-', key: ADMIN_KEY };
    const text = collector.bodies.join('\n');
    expect(text.length).toBeGreaterThan(1_000);
    expect(new Searcher(secrets).finds(text)).toEqual([]);
  });

  it('are described in docs/operations/tracing.md, span by span', () => {
    const page = readFileSync('docs/operations/tracing.md', 'utf8');
    const named = new Set([...page.matchAll(/`([^`]+)`/g)].map(([, word]) => word));
    const isOfRoute = (name: string) => /^[A-Z]+ \//.test(name);
    const stores = (name: string) => (name.startsWith('store ') ? 'store …' : name);
    const used = collector.spans.flatMap(({ name, attributes }) => [
      ...(isOfRoute(name) ? [] : [stores(name)]),
      ...Object.keys(attributes),
    ]);
    expect(used.length).toBeGreaterThan(50);
    expect([...new Set(used)].filter((word) => !named.has(word))).toEqual([]);
  });

  function newSession(providerUserId: string, clientUserId: string): SimulatedSession {
    return createSession(world.simulator.state, {
      providerUserId,
      clientUserIds: [clientUserId],
      noteTemplateIds: ['11111111-1111-4111-8111-111111111111'],
      input: { kind: 'recording', urls: ['https://files.example.test/1.wav'], content: 'Recording' },
      date: '2026-03-01T09:00:00.000Z',
      partnerAppointmentId: undefined,
    });
  }
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
