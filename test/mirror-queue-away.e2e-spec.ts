import { useMirrors } from './support/service.js';

interface Report {
  status: string;
  checks: Record<string, { status: string }>;
}

describe('while the store of the queue is away from the start', () => {
  const newMirror = useMirrors();

  it('health says so before anybody rings, people are mirrored by the sweep, and the service stops in time', async () => {
    const mirror = await newMirror({ env: { REDIS_URL: 'redis://127.0.0.1:1' } });
    const service = await mirror.start();
    const health = await service.call<Report>('GET', '/health/ready');
    expect([health.status, health.body.status]).toEqual([200, 'degraded']);
    expect(health.body.checks.queue?.status).toBe('degraded');

    const body = { email: 'ada@example.org', firstName: 'Ada', lastName: 'Osei' };
    const { body: person } = await service.call('PUT', '/v1/providers/p-1', { body, wait: 30 });
    expect(person.sync.state).toBe('synced');

    const asked = performance.now();
    expect(await service.kill('SIGTERM')).toBe(0);
    expect(performance.now() - asked).toBeLessThan(8_000);
    const lines = service.output().trim().split('\n');
    expect(lines.filter((line) => !line.startsWith('{'))).toEqual([]);
  }, 60_000);
});
