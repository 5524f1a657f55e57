import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import { type Mirror, PLATFORM_ACCOUNT, useMirrors } from './support/service.js';

/** The minute, scaled down. */
const WINDOW_SECONDS = 2;
const CALLS = 30;
/** Longer than any test waits. */
const STEP = `interval '1 day'`;

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;
let created = 0;

beforeAll(async () => {
  const platform = { latencyMs: [0, 500] as [number, number] };
  // The platform stands in this process: what it counts later than that, for it was stalled, the log can't know of.
  const env = { PLATFORM_TIMEOUT_SECONDS: '15' };
  mirror = await newMirror({ calls: CALLS, windowSeconds: WINDOW_SECONDS, platform, env });
  service = await mirror.start();
  const body = { email: 'home@example.org', firstName: 'Pia', lastName: 'Ruiz' };
  expect((await service.call('PUT', '/v1/providers/home', { body, wait: 60 })).status).toBe(200);
});

afterEach(() => {
  const { rateLimited, largestWindow } = mirror.simulator.state.arrivals.stats(WINDOW_SECONDS).userManagement;
  expect([rateLimited, Math.max(CALLS, largestWindow.all)]).toEqual([0, CALLS]);
});

async function wantClients(count: number): Promise<void> {
  const body = { firstName: 'Cleo', lastName: 'Adler', providers: ['home'] };
  const puts = Array.from({ length: count }, () => service.call('PUT', `/v1/clients/c-${++created}`, { body }));
  for (const { status } of await Promise.all(puts)) expect([200, 202]).toContain(status);
}

const allCreated = () => until('all are created', () => mirror.arrivals('createClient') >= created);

/** Leaves the log and the budget as a clock does that is set back by `STEP` at this moment. */
const setBack = () =>
  mirror.sql(
    `WITH budget AS (SELECT account FROM call_budgets WHERE account = $1 FOR UPDATE),
       log AS (UPDATE platform_calls c SET granted_at = granted_at + ${STEP}, answered_at = answered_at + ${STEP},
         expires_at = expires_at + ${STEP} FROM budget b WHERE c.account = b.account)
     UPDATE call_budgets SET blocked_until = clock_timestamp() + ${STEP} + interval '1 second',
       bulk_next_at = clock_timestamp() + ${STEP} FROM budget WHERE call_budgets.account = budget.account`,
    [PLATFORM_ACCOUNT],
  );

test('a clock that is set back in the middle of a burst delays calls by no more than a call’s time and its window, and none is made too many', async () => {
  await wantClients(10);
  await allCreated();
  await wantClients(CALLS);
  await until('a window is full', () => mirror.arrivals('createClient') >= CALLS);
  await setBack();
  await wantClients(CALLS);
  await allCreated();
});

test('an import goes on after the clock was set back', async () => {
  const rows = Array.from({ length: CALLS }, (_, row) => `i-${row},i-${row}@example.org,Pia,Ruiz`);
  await setBack();
  const content = ['externalId,email,firstName,lastName', ...rows].join('\n');
  const { id } = await service.startImport('kind=providers', [{ name: 'providers.csv', type: 'text/csv', content }]);
  await until('it is done', async () => {
    const { body } = await service.call<{ state: string }>('GET', `/v1/imports/${id}`);
    return body.state === 'completed';
  });
});

test('a process that died before the clock was set back is not taken for alive until then', async () => {
  const [dead] = await mirror.sql<{ id: string }>(
    `INSERT INTO workers (id, alive_until) VALUES (gen_random_uuid(), now() + ${STEP}) RETURNING id`,
  );
  const alive = 'SELECT 1 FROM workers WHERE id = $1 AND alive_until > now()';
  await until('it is dead', async () => (await mirror.sql(alive, [dead?.id])).length === 0);
});
