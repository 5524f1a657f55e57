import { ADMIN_KEY } from '../../harness/world/settings.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { useArrivingSessions } from '../sessions/arriving-sessions.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const DOMAIN = 'https://recorder.example.org';
const world = useWorld({ settings: { PLATFORM_PARTNER_DOMAIN: DOMAIN }, platform: { processingEvents: false } });
const { onPlatform, toEnd } = useArrivingSessions(world);

/** A session of the platform that has ended. */
async function session(): Promise<SessionResponse> {
  const body = { provider: 'p-1', noteTemplateIds: [SOAP], input: { text: { text: 'They spoke.' } } };
  const { sessionId } = (await world.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 60 })).body;
  toEnd(onPlatform(sessionId));
  await world.settle();
  return (await world.call<SessionResponse>('GET', `/v1/sessions/${sessionId}`)).body;
}

/** The calls that a caller waits for: the operation, and the request that makes it. */
const REQUESTS: [operation: string, method: string, path: (id: string) => string, body: object | undefined][] = [
  ['updateSession', 'PATCH', (id) => `/v1/sessions/${id}`, { externalTreatmentPlan: 'A plan.' }],
  ['getSession', 'GET', (id) => `/v1/sessions/${id}/recording-url`, undefined],
  ['initiateAuth', 'POST', () => '/v1/recorder/recoveries', { provider: 'p-1' }],
  ['recordingUploadUrl', 'POST', () => '/v1/recordings/upload-url', {}],
  ['complianceUploadUrl', 'POST', () => '/v1/compliance/upload-url', {}],
];

describe.each(REQUESTS)('%s within a request', (operation, method, path, body) => {
  const ask = async (id: string) => {
    const before = world.platform.arrivals(operation);
    const { status, headers } = await world.call(method, path(id), { body });
    const retryAfter = headers.get('retry-after');
    return { status, retryAfter: retryAfter && Number(retryAfter), calls: world.platform.arrivals(operation) - before };
  };

  test('is refused with Retry-After during the pause of a 429, without a call, and sent after it', async () => {
    const { id } = await session();
    world.platform.injectFault({ operation, kind: 'rate-limit' });
    expect(await ask(id)).toEqual({ status: 503, retryAfter: expect.any(Number), calls: 1 });
    expect(await ask(id)).toEqual({ status: 503, retryAfter: expect.any(Number), calls: 0 });
    await world.advance('2 min');
    expect(await ask(id)).toMatchObject({ calls: 1 });
  });

  test('is not stopped by another pause, and a success ends it', async () => {
    const { id } = await session();
    world.platform.injectFault({ operation, kind: 'status', status: 401 });
    await ask(id);
    const causes = async () => (await world.call<{ status: string }>('GET', '/health/ready')).body.status;
    expect(await causes()).toBe('degraded');
    await world.advance('1 s');
    expect(await ask(id)).toMatchObject({ calls: 1 });
    expect(await causes()).toBe('ok');
  });
});

test('a caller who disconnects says nothing about the platform', async () => {
  for (let times = 0; times < 6; times += 1) {
    const before = world.platform.arrivals('initiateAuth');
    world.platform.hold({ operation: 'initiateAuth' });
    const gone = new AbortController();
    const asked = fetch(`${world.url}/v1/recorder/recoveries`, {
      ...{ method: 'POST', body: JSON.stringify({ provider: 'p-1' }), signal: gone.signal },
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
    });
    await world.untilCalled('initiateAuth', before);
    gone.abort();
    await asked.catch(() => undefined);
    world.platform.release();
  }
  await world.settle();
  expect((await world.call<{ status: string }>('GET', '/health/ready')).body.status).toBe('ok');
});
