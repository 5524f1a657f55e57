import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { TraceResponse } from '../src/people/api/trace.dto.js';
import { type Mirror, useMirrors } from './support/service.js';

const newMirror = useMirrors();
const profile = (externalId: string) => ({ email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' });

/** No call counts as lost on a machine that stands still for a while. */
const PATIENT = { PLATFORM_TIMEOUT_SECONDS: '60' };

describe('a 403', () => {
  let mirror: Mirror;
  let service: Service;
  beforeAll(async () => {
    mirror = await newMirror({ env: PATIENT });
    service = await mirror.start();
  });
  afterEach(() => mirror.release());
  const put = (externalId: string) => service.call('PUT', `/v1/providers/${externalId}`, { body: profile(externalId) });
  const show = async (externalId: string, wait = 0) =>
    (await service.call('GET', `/v1/providers/${externalId}`, { wait })).body.sync;
  const becomes = (externalId: string, state: string, code?: string) =>
    until(`${externalId} is ${state}`, async () => {
      const sync = await show(externalId, 1);
      return sync.state === state && sync.error?.code === code;
    });
  const healthIs = (wanted: string) =>
    until(`the health is ${wanted}`, async () => {
      const { body } = await service.call<{ status: string }>('GET', '/health/ready');
      return body.status === wanted;
    });
  /** The open circuit: its 403s in a row, and the creates that left since the call `since`. */
  const circuit = async (since = '0') => {
    const [row] = await mirror.sql<{ failures: number; creates: number; last: string }>(
      `SELECT failures, (SELECT max(id) FROM platform_calls) AS last,
         (SELECT count(*)::int FROM platform_calls WHERE operation = 'createProvider' AND id > $1
            AND (outcome IS NULL OR outcome NOT IN ('not-sent', 'unreachable'))) AS creates
       FROM circuits WHERE operation = 'createProvider' AND opened_at IS NOT NULL`,
      [since],
    );
    return row;
  };
  const probeIn = (seconds: number) =>
    mirror.sql(`UPDATE circuits SET probe_at = clock_timestamp() + $1 * interval '1 second'`, [seconds]);
  /** A probe that comes by itself may make it meanwhile. */
  const checked = (externalId: string) =>
    until(`${externalId} waits for its create`, async () => {
      const { step, state } = await show(externalId);
      return step === 'createProvider' || state === 'synced';
    });

  test('stops its operation alone but for single probes, burns nobody’s attempts, and ends by itself', async () => {
    const ids = ['k-1', 'k-2', 'k-3', 'k-4'];
    mirror.trouble({ operation: 'createProvider', kind: 'forbid', count: null });
    await put('k-1');
    await until('the operation is stopped', () => circuit());
    const { last } = await until('no probe is under way, and none comes', async () => {
      await probeIn(3_600);
      const quiet = await mirror.sql(
        `SELECT 1 FROM circuits WHERE probe_at > clock_timestamp() + interval '30 minutes'
           AND NOT EXISTS (SELECT 1 FROM platform_calls WHERE answered_at IS NULL)`,
      );
      return quiet.length > 0 ? circuit() : undefined;
    });
    for (const externalId of ids.slice(1)) await put(externalId);
    for (const externalId of ids) await checked(externalId);
    // Whoever is wanted later and needs no create is served meanwhile.
    mirror.simulator.state.users.add({ role: 'HealthcareProvider', ...profile('k-known'), providerUserIds: [] });
    await put('k-known');
    await becomes('k-known', 'synced');
    expect((await circuit(last))?.creates).toBe(0);
    await healthIs('degraded');
    await until('who was refused says why', async () => {
      const { step, error } = await show('k-1');
      return step === 'createProvider' && error?.code === 'platform-unauthorized';
    });
    expect((await show('k-4')).state).toBe('pending');

    await probeIn(0);
    const open = await until('a probe is refused', async () => {
      const row = await circuit(last);
      return row && row.creates > 0 && row.failures > 1 ? row : undefined;
    });
    // Each failure but the first is the answer to a probe, and one more probe may be under way.
    expect(open.creates).toBeLessThanOrEqual(open.failures);

    mirror.release();
    // One more probe may be refused still, which puts off the next.
    await until('the operation goes on', async () => {
      await probeIn(0);
      return (await circuit()) === undefined;
    });
    for (const externalId of ids) {
      await becomes(externalId, 'synced');
      expect(mirror.usersOf(externalId)).toHaveLength(1);
    }
    await healthIs('ok');
  });

  test('of two people each: the probes go to others, who all get on, and only the two fail as forbidden', async () => {
    const refused = ['own-1', 'own-2'];
    for (const partnerUserId of refused) {
      mirror.trouble({ operation: 'createProvider', kind: 'forbid', count: null, match: { partnerUserId } });
    }
    for (const externalId of refused) await put(externalId);
    for (const externalId of refused) {
      await until(`${externalId} is refused`, async () => {
        await probeIn(0);
        return (await show(externalId)).error?.code === 'platform-unauthorized';
      });
      await checked(externalId);
    }
    await probeIn(3_600);
    const others = ['other-1', 'other-2', 'other-3'];
    for (const externalId of others) await put(externalId);
    for (const externalId of others) await checked(externalId);
    // A single probe is enough: it is the turn of somebody who was never refused.
    await probeIn(0);
    for (const externalId of others) await becomes(externalId, 'synced');
    for (const externalId of refused) await becomes(externalId, 'failed', 'forbidden');
    await healthIs('ok');
    mirror.release();
  });

  test('of one item is its own: somebody else’s probe goes through, and only it fails as forbidden', async () => {
    mirror.trouble({ operation: 'createProvider', kind: 'forbid', count: null, match: { partnerUserId: 'own' } });
    await put('own');
    await until('it is refused', async () => (await show('own')).error?.code === 'platform-unauthorized');
    for (const externalId of ['by-1', 'by-2']) await put(externalId);
    await checked('by-1');
    await probeIn(0);
    for (const externalId of ['by-1', 'by-2']) await becomes(externalId, 'synced');
    await becomes('own', 'failed', 'forbidden');
    await healthIs('ok');
    await put('after');
    await becomes('after', 'synced');

    mirror.release();
    await service.call('POST', '/v1/providers/own/resolve', { body: { action: 'retry' } });
    await becomes('own', 'synced');
  });
});

describe('a 429', () => {
  let mirror: Mirror;
  let service: Service;

  const PEOPLE = 40;
  /** Seconds that no test lasts: a pause ends when the test ends it. */
  const LONG = 1_800;

  beforeAll(async () => {
    mirror = await newMirror({ platform: { latencyMs: [40, 80] }, env: PATIENT });
    [service] = await Promise.all([
      mirror.start(),
      mirror.start({ ROLES: 'worker' }),
      mirror.start({ ROLES: 'worker' }),
    ]);
  });
  /** Gives all workers plenty to do. */
  const saturate = async (prefix: string) => {
    const content = ['externalId,email,firstName,lastName']
      .concat(Array.from({ length: PEOPLE }, (_, at) => `${prefix}${at},${prefix}${at}@example.org,Pia,Ruiz`))
      .join('\n');
    const before = mirror.arrivals();
    const { id } = await service.startImport('kind=providers', [{ name: 'providers.csv', type: 'text/csv', content }]);
    await until('calls are made', () => mirror.arrivals() > before + PEOPLE / 4);
    return id;
  };
  const isImported = async (id: string) =>
    expect((await service.importEnded(id)).counts).toMatchObject({ total: PEOPLE, created: PEOPLE });
  /** The newest 429 that was answered: when it left and was answered, and the pause as it stands, in seconds. */
  const refusal = async () => {
    const [row] = await mirror.sql<{ id: string; afterGrant: number; afterAnswer: number; left: number }>(
      `SELECT c.id, extract(epoch FROM blocked_until - c.granted_at)::float8 AS "afterGrant",
         extract(epoch FROM blocked_until - c.answered_at)::float8 AS "afterAnswer",
         extract(epoch FROM blocked_until - clock_timestamp())::float8 AS left
       FROM call_budgets, platform_calls c WHERE c.status = 429 ORDER BY c.id DESC LIMIT 1`,
    );
    return row;
  };
  const nextRefusal = async (before: Awaited<ReturnType<typeof refusal>>) =>
    until('a 429 is answered', async () => {
      const row = await refusal();
      return row?.id === before?.id ? undefined : row;
    });
  const granted = async () => (await mirror.sql('SELECT 1 FROM platform_calls')).length;
  const endPause = () => mirror.sql('UPDATE call_budgets SET blocked_until = clock_timestamp()');
  afterEach(async () => {
    mirror.release();
    await endPause();
  });

  test.each<['seconds' | 'date']>([['seconds'], ['date']])(
    'stops every worker at once for as long as it says, in %s; then all go on',
    async (retryAfter) => {
      const id = await saturate(`${retryAfter}-`);
      const before = await refusal();
      mirror.trouble({ kind: 'rate-limit', retryAfter, retryAfterSeconds: LONG });
      const pause = await nextRefusal(before);
      // A date has whole seconds, and is read by another clock than the database's.
      const slack = retryAfter === 'date' ? 1 : 0;
      expect(retryAfter === 'date' ? pause.afterGrant : pause.afterAnswer).toBeGreaterThanOrEqual(LONG - slack);
      expect(pause.left).toBeLessThanOrEqual(LONG + slack);

      // Nothing more is granted to anybody, not to who waits at a screen either.
      const stopped = await granted();
      const path = `/v1/providers/at-${retryAfter}`;
      const { status } = await service.call('PUT', path, { body: profile(`at-${retryAfter}`), wait: 2 });
      expect([status, await granted()]).toEqual([202, stopped]);
      expect(mirror.arrivals()).toBeLessThanOrEqual(stopped);

      await endPause();
      await until('who waited at a screen is mirrored', async () => {
        const { body } = await service.call('GET', path, { wait: 1 });
        return body.sync.state === 'synced';
      });
      await isImported(id);
    },
  );

  test('that says nothing stops every worker for about a second; then all go on by themselves', async () => {
    const id = await saturate('unsaid-');
    const before = await refusal();
    mirror.trouble({ kind: 'rate-limit', retryAfter: 'absent' });
    const { left } = await nextRefusal(before);
    expect(left).toBeLessThanOrEqual(1.25);
    await isImported(id);
    // The pause ends as it was set; its least is three quarters of a second.
    const within = await mirror.sql(
      `SELECT 1 FROM call_budgets, platform_calls WHERE granted_at < blocked_until
         AND granted_at > blocked_until - interval '750 milliseconds'`,
    );
    expect(within).toEqual([]);
  });

  test('with a shorter wait never cuts a longer one short', async () => {
    const id = await saturate('x-');
    // Everything that is under way is held on its way to the platform, until there is a longer pause.
    const { settings } = mirror.simulator.state;
    mirror.simulator.state.settings = { ...settings, latencyMs: [3_600_000, 3_600_000] };
    await until('calls are on their way', async () => (await granted()) > mirror.arrivals() + 5);
    const [longer] = await mirror.sql(
      `UPDATE call_budgets SET blocked_until = clock_timestamp() + $1 * interval '1 second' RETURNING blocked_until`,
      [LONG],
    );
    const before = await refusal();
    mirror.trouble({ kind: 'rate-limit', retryAfter: 'seconds', retryAfterSeconds: 1 });
    mirror.simulator.state.settings = settings;
    await until('a 429 is answered', async () => {
      mirror.simulator.state.timers.cancelAll();
      return (await refusal())?.id !== before?.id;
    });
    expect(await mirror.sql('SELECT blocked_until FROM call_budgets')).toEqual([longer]);
    await endPause();
    await until('what was under way is answered', async () => {
      mirror.simulator.state.timers.cancelAll();
      return (await mirror.sql('SELECT 1 FROM platform_calls WHERE answered_at IS NULL')).length === 0;
    });
    await isImported(id);
  });

  test('is nobody’s fault: everybody is mirrored once, and the traces show every refusal', async () => {
    expect(mirror.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
    expect(mirror.simulator.state.users.list()).toHaveLength(4 * PEOPLE + 2);
    const prefixes = ['seconds-', 'date-', 'unsaid-', 'x-'];
    const ids = prefixes.flatMap((prefix) => Array.from({ length: PEOPLE }, (_, at) => prefix + at));
    const histories = await Promise.all(
      ids.map(async (externalId) => {
        const body = { externalId, kind: 'provider' };
        return (await service.call<TraceResponse>('POST', '/v1/people/trace', { body })).body.history;
      }),
    );
    const refused = histories.flat().filter(({ status, outcome }) => status === 429 && outcome === 'rate-limited');
    const { rateLimited } = mirror.simulator.state.arrivals.stats(60).userManagement;
    expect([refused.length, rateLimited]).toEqual([4, 4]);
  });
});
