import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import { ADMIN_KEY } from './support/app.js';
import { type Mirror, useMirrors } from './support/service.js';

interface Report {
  status: string;
  checks: Record<string, { status: string; reason?: string }>;
}

/** What `/metrics` says of workers; undefined when nothing. */
async function heartbeatAge(api: Service): Promise<number | undefined> {
  const answer = await fetch(`${api.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
  const [, seconds] = /^notebridge_heartbeat_age_seconds\{role="worker"\} (\S+)$/m.exec(await answer.text()) ?? [];
  return seconds === undefined ? undefined : Number(seconds);
}

describe('processes of one role each', () => {
  const newMirror = useMirrors();
  let mirror: Mirror;

  beforeAll(async () => {
    mirror = await newMirror();
  });

  it('an api says that no worker is alive, until one is', async () => {
    const api = await mirror.start({ ROLES: 'api' });
    /** @param reason part of what it says of workers: a look may find a check without its answer in time */
    const becomes = (status: string, reason = '') =>
      until(`the API is ${status} (${reason})`, async () => {
        const { status: code, body } = await api.call<Report>('GET', '/health/ready');
        return code === 200 && body.status === status && (body.checks.worker?.reason ?? '').includes(reason);
      });
    await becomes('degraded', 'No worker was alive');
    expect(await heartbeatAge(api)).toBeUndefined();
    const worker = await mirror.start({ ROLES: 'worker' });
    await becomes('ok');
    await until('its heartbeat is measured', async () => Number(await heartbeatAge(api)) >= 0);

    await worker.kill();
    await mirror.sql(`UPDATE workers SET alive_until = alive_until - interval '38 seconds'`);
    await becomes('degraded', 'No worker was alive');
    await until('its heartbeat is old', async () => Number(await heartbeatAge(api)) >= 30);
  });

  it('one whose port another has taken ends, and says in one sentence what to do', async () => {
    const { url } = await mirror.start({ ROLES: 'api' });
    const { port } = new URL(url);
    const late = await mirror.start({ ROLES: 'worker', PORT: port }).catch((error: Error) => error.message);
    expect(late).toMatch(new RegExp(`^The address 127\\.0\\.0\\.1:${port} is taken .* set PORT to a free port`, 'm'));
    expect(late).not.toMatch(/^\s+at /m);
  });

  it('a worker answers for its health and its metrics, and nothing else', async () => {
    const worker = await mirror.start({ ROLES: 'worker' });
    expect((await worker.call('GET', '/health/live')).status).toBe(200);
    await until('it is ready', async () => (await worker.call('GET', '/health/ready')).status === 200);
    const metrics = await fetch(`${worker.url}/metrics`, {
      headers: { authorization: 'Bearer admin-key-of-the-notebridge-tests' },
    });
    expect(await metrics.text()).toContain('notebridge_');
    expect((await fetch(`${worker.url}/metrics`)).status).toBe(401);
    for (const path of ['/v1/people', '/v1/capabilities', '/docs', '/openapi.json', '/none']) {
      expect((await worker.call('GET', path)).status).toBe(404);
    }
    expect((await worker.call('POST', '/webhooks/platform', { body: {} })).status).toBe(404);
  });
});
