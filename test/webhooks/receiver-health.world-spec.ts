import { Api } from '../../src/cli/api/api.js';
import { readStatus, statusLines } from '../../src/cli/commands/status.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import { Metrics } from '../../src/monitoring/metrics.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import type { OverviewResponse } from '../../src/operations/overview/overview.dto.js';
import { ReceiverHealth } from '../../src/webhooks/receive/receiver-health.js';
import { connectTo, headOf, wholeAnswer } from '../http/connection.js';
import { ADMIN_KEY } from '../support/app.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
afterEach(() => jest.restoreAllMocks());

const AGED = { WEBHOOK_MAX_AGE_SECONDS: '3600' };
const UNSIGNED = { method: 'POST', body: '{}' };
/** A genuine delivery of this age. */
const aged = (seconds = 0) => signed(sessionEvent('s'), { timestamp: String(world.now().getTime() - seconds * 1_000) });

const send = async (init: RequestInit, service: { url: string } = world) => {
  const response = await deliver(service, init);
  const text = await response.text();
  return { status: response.status, detail: text && (JSON.parse(text).detail as string) };
};
const many = (times: number, init: RequestInit, service?: { url: string }) =>
  Promise.all(Array.from({ length: times }, () => send(init, service)));
const state = () => world.get(ReceiverHealth).read();
const refused = async () =>
  Object.fromEntries(Object.entries((await state()).refusals).map(([cause, { count }]) => [cause, count]));
const health = async () => {
  const { checks, causes } = (await world.call<HealthReport>('GET', '/health/ready')).body;
  return { ...checks.webhooks, causes: causes.filter(({ part }) => part === 'webhooks') };
};

const { headers: GOOD } = signed('{}');
const [SIGNATURE = '', TIMESTAMP = ''] = [GOOD['x-service-signature'], GOOD['x-service-timestamp']];

describe('the answer', () => {
  test.each<[cause: string, change: Record<string, string>, detail: RegExp]>([
    ['missing-signature', { 'x-service-signature': '' }, /x-service-signature is missing: a proxy .* drops it/],
    ['missing-timestamp', { 'x-service-timestamp': '' }, /x-service-timestamp is missing: a proxy .* drops it/],
    ['malformed-signature', { 'x-service-signature': `${SIGNATURE}00` }, /not 64 hexadecimal digits/],
    ['malformed-timestamp', { 'x-service-timestamp': `${TIMESTAMP}:1` }, /not a time in milliseconds/],
    ['malformed-timestamp', { 'x-service-timestamp': '-1' }, /not a time in milliseconds/],
    ['malformed-timestamp', { 'x-service-timestamp': '1e12' }, /not a time in milliseconds/],
    ['content-encoding', { 'content-encoding': 'gzip' }, /Content-Encoding/],
    [
      'duplicate-header',
      { 'x-service-signature': `${SIGNATURE}\r\nx-service-signature: ${SIGNATURE}` },
      /more than one/,
    ],
    [
      'duplicate-header',
      { 'x-service-timestamp': `${TIMESTAMP}\r\nx-service-timestamp: ${TIMESTAMP}` },
      /more than one/,
    ],
    ['wrong-signature', { 'x-service-signature': '0'.repeat(64) }, /none of the secrets in PLATFORM_WEBHOOK_SECRET/],
  ])('names the cause %s, which is counted (%#)', async (cause, change, detail) => {
    const headers = { ...GOOD, ...change, 'content-length': '2', connection: 'close' };
    const answer = await wholeAnswer(connectTo(world, `${headOf('POST', '/webhooks/platform', headers)}{}`));
    expect(answer).toMatch(/^HTTP\/1.1 401 [\s\S]*"urn:notebridge:problem:not-genuine"/);
    expect(answer).toMatch(detail);
    expect(await refused()).toEqual({ [cause]: 1 });
  });

  test('says by how many seconds the clock is off', async () => {
    const service = await world.startAnother(AGED);
    expect((await send(aged(3_600), service)).status).toBe(204);
    expect(await send(aged(3_661), service)).toMatchObject({
      status: 401,
      detail: expect.stringContaining('61 seconds older than'),
    });
    expect(await send(aged(-400), service)).toMatchObject({
      status: 401,
      detail: expect.stringContaining('400 seconds ahead of'),
    });
    await service.app.get(ReceiverHealth).flush();
    expect(await refused()).toEqual({ stale: 1, future: 1 });
  });
});

describe('health', () => {
  test('is ok while only some deliveries are refused, which the metric counts by cause', async () => {
    const count = async () => {
      const metric = await world.get(Metrics).registry.getSingleMetric('notebridge_webhook_rejections_total')?.get();
      return metric?.values.find(({ labels }) => labels.cause === 'wrong-signature')?.value ?? 0;
    };
    const before = await count();
    for (let i = 0; i < 5; i += 1) {
      await send(signed(sessionEvent('s'), { secret: 'the old secret of one process' }));
      await send(aged(i));
    }
    expect([(await health()).status, (await count()) - before]).toEqual(['ok', 5]);
  });

  test('is degraded while a proxy drops the header of every delivery, until a genuine one arrives', async () => {
    await many(60, UNSIGNED);
    const { status, reason, causes } = await health();
    expect([status, causes.map(({ code }) => code)]).toEqual(['degraded', ['webhook-headers']]);
    expect(reason).toMatch(/genuine webhook: 60\. The header x-service-signature is missing: a proxy .* drops it\./);
    expect(reason).toContain('not stored, and the platform repeats each at most five times');
    const lastGenuineAt = world.now().toISOString();
    await send(aged());
    expect(await health()).toMatchObject({ status: 'ok', facts: { lastGenuineAt } });
    expect(await refused()).toEqual({});
  });

  test.each([
    ['older', 3_661, '61 seconds older than WEBHOOK_MAX_AGE_SECONDS'],
    ['newer', -400, '400 seconds ahead of the clock'],
  ])('is degraded after one correctly signed delivery that is too much %s', async (_, seconds, words) => {
    const service = await world.startAnother(AGED);
    await send(aged(), service);
    await send(aged(seconds), service);
    await service.app.get(ReceiverHealth).flush();
    expect(await health()).toMatchObject({ status: 'degraded', causes: [{ code: 'webhook-clock' }] });
    expect((await health()).reason).toContain(words);
    await send(aged(), service);
    await service.app.get(ReceiverHealth).flush();
    expect((await health()).status).toBe('ok');
  });

  test('is degraded after three wrong signatures, for an hour', async () => {
    const wrong = signed(sessionEvent('s'), { secret: 'known to the platform only' });
    await many(2, wrong);
    expect((await health()).status).toBe('ok');
    await send(wrong);
    expect(await health()).toMatchObject({
      status: 'degraded',
      causes: [{ code: 'webhook-secret', action: expect.stringContaining('to PLATFORM_WEBHOOK_SECRET, and restart') }],
    });
    await world.advance('1 h');
    expect((await health()).status).toBe('ok');
    expect(await refused()).toEqual({ 'wrong-signature': 3 });
  });
});

test('status and overview show the cause in the words of health, and the last genuine delivery', async () => {
  await send(aged());
  const { lastGenuineAt } = (await health()).facts ?? {};
  await many(3, UNSIGNED);
  const [{ cause, action } = { cause: '', action: '' }] = (await health()).causes;
  await world.advance('3 s'); // an overview is kept for two seconds
  const { body } = await world.call<OverviewResponse>('GET', '/v1/overview');
  expect(body).toMatchObject({ causes: [{ code: 'webhook-headers', cause, action }], inbox: { lastGenuineAt } });
  const status = statusLines(await readStatus(new Api(() => ({ url: world.url, key: ADMIN_KEY }))));
  expect(status).toContain(cause);
  expect(status).toContain('x-service-signature is missing');
});

describe('refusals', () => {
  test('of several processes are summed, and a genuine delivery to one clears those of all', async () => {
    const other = await world.startAnother({});
    const flush = () => other.app.get(ReceiverHealth).flush();
    await many(2, UNSIGNED);
    await many(3, UNSIGNED, other);
    await Promise.all([flush(), world.get(ReceiverHealth).flush()]);
    expect(await refused()).toEqual({ 'missing-signature': 5 });
    await send(aged(), other);
    await flush();
    expect(await state()).toEqual({ genuineAt: expect.any(Date), refusals: {} });
  });

  test('are stored within a second, and at the latest when the process ends', async () => {
    const other = await world.startAnother({});
    await send(UNSIGNED);
    await send(UNSIGNED, other);
    await other.app.close();
    await world.advance('1 s');
    const stored = `SELECT refusals->'missing-signature'->'count' AS n FROM webhook_receiver`;
    await world.eventually('both are stored', async () => (await world.sql<{ n: number }>(stored))[0]?.n === 2);
  });

  test('that cannot be stored are kept', async () => {
    await many(2, UNSIGNED);
    await world.sql('ALTER TABLE webhook_receiver RENAME TO away');
    await world.get(ReceiverHealth).flush();
    await send(UNSIGNED);
    await world.sql('ALTER TABLE away RENAME TO webhook_receiver');
    expect(await refused()).toEqual({ 'missing-signature': 3 });
  });

  test('include bodies that are too large', async () => {
    const service = await world.startAnother({ WEBHOOK_BODY_LIMIT: '64 KiB' });
    await send(signed('x'.repeat(64 * 1024 + 1)), service);
    await service.app.get(ReceiverHealth).flush();
    expect(await refused()).toEqual({ 'body-too-large': 1 });
  });

  test('include requests that miss the receiver', async () => {
    const ask = async (method: string, path: string) => (await fetch(`${world.url}${path}`, { method })).status;
    for (const path of ['/webhooks', '/webhooks/', '/webhooks/other', '/webhooks/platform/v2'])
      expect([path, await ask('POST', path)]).toEqual([path, 404]);
    for (const method of ['GET', 'PUT'])
      expect([method, await ask(method, '/webhooks/platform/')]).toEqual([method, 404]);
    expect(await refused()).toEqual({ 'wrong-path': 4, 'wrong-method': 2 });
    expect(await health()).toMatchObject({ causes: [{ code: 'webhook-address' }] });
  });

  test('include signed deliveries on any path, because a proxy may change it', async () => {
    for (const path of ['/notebridge/webhooks/platform', '/Webhooks/Platform', '/webhook/platform?x=1'])
      expect([path, (await fetch(`${world.url}${path}`, aged())).status]).toEqual([path, 404]);
    expect(await refused()).toEqual({ 'wrong-path': 3 });
    expect(await health()).toMatchObject({ status: 'degraded', causes: [{ code: 'webhook-address' }] });
  });

  test('are counted once if they arrive during a write that fails', async () => {
    await send(UNSIGNED);
    jest.spyOn(world.get(PrismaService), 'transaction').mockImplementationOnce(async () => {
      await send(UNSIGNED);
      throw new Error('the database is away');
    });
    await world.get(ReceiverHealth).flush();
    expect(await refused()).toEqual({ 'missing-signature': 2 });
  });

  test('do not include what strangers ask for elsewhere', async () => {
    for (const path of ['/webhooks2', '/wp-login.php', '/v1/webhooks/platform'])
      await fetch(`${world.url}${path}`, UNSIGNED);
    await fetch(`${world.url}/webhooks/other`);
    expect(await state()).toEqual({ genuineAt: null, refusals: {} });
  });
});
