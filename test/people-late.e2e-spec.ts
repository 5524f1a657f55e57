import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import { type Mirror, useMirrors } from './support/service.js';

/** Far longer than a test: a grace ends when the test moves it back. */
const GRACE_SECONDS = 3_600;

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;

beforeAll(async () => {
  // On a busy machine a check may be late, too: it is asked again, so no test counts checks.
  mirror = await newMirror({
    env: { PLATFORM_TIMEOUT_SECONDS: '1', UNKNOWN_OUTCOME_GRACE_SECONDS: String(GRACE_SECONDS) },
  });
  service = await mirror.start();
});

const profile = (externalId: string) => ({ email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' });
const put = (externalId: string) => service.call('PUT', `/v1/providers/${externalId}`, { body: profile(externalId) });
const verdict = async (externalId: string) => {
  const { sync } = (await service.call('GET', `/v1/providers/${externalId}`)).body as PersonResponse;
  return [sync.state, sync.error?.code ?? null];
};
const becomes = (externalId: string, state: string) =>
  until(`${externalId} is ${state}`, async () => {
    const { sync } = (await service.call('GET', `/v1/providers/${externalId}`, { wait: 1 })).body;
    return sync.state === state && sync.error === null;
  });

/** Waits until a create counts as lost, and answers how many seconds after it left it may be looked up. */
async function graceOf(externalId: string): Promise<number> {
  const lost = await until('the create counts as lost', async () => {
    const rows = await mirror.sql<{ grace: number }>(
      `SELECT coalesce(extract(epoch FROM p.attempt_look_up_at - c.granted_at), 0)::float8 AS grace
       FROM platform_calls c JOIN people p ON p.id = c.person_id
       WHERE p.external_id = $1 AND c.operation = 'createProvider' AND c.outcome = 'unknown-outcome'`,
      [externalId],
    );
    return rows[0];
  });
  return lost.grace;
}
const endGrace = (externalId: string) =>
  mirror.sql(
    'UPDATE people SET attempt_look_up_at = clock_timestamp(), due_at = clock_timestamp() WHERE external_id = $1',
    [externalId],
  );

test.each([
  ['done after its connection was cut', { kind: 'commit-late', ms: 100 }],
  ['answered too late', { kind: 'slow', ms: GRACE_SECONDS * 1_000 }],
] as const)('a create that is %s is looked up when the grace is over, and made once', async (_name, rule) => {
  const externalId = `late-${rule.kind}`;
  const creates = mirror.arrivals('createProvider');
  mirror.trouble({ operation: 'createProvider', match: { partnerUserId: externalId }, ...rule });
  await put(externalId);
  expect(await graceOf(externalId)).toBeGreaterThanOrEqual(GRACE_SECONDS);
  await until('it is done', () => mirror.usersOf(externalId).length === 1);

  // Whoever is wanted later is served, and this one still waits.
  const known = `known-${rule.kind}`;
  mirror.simulator.state.users.add({ role: 'HealthcareProvider', ...profile(known), providerUserIds: [] });
  await put(known);
  await becomes(known, 'synced');
  expect(await verdict(externalId)).toEqual(['pending', 'outcome-unknown']);

  await endGrace(externalId);
  await becomes(externalId, 'synced');
  expect(mirror.arrivals('createProvider')).toBe(creates + 1);
  expect(mirror.usersOf(externalId)).toHaveLength(1);
});

test('a delete during a create whose answer is lost finds the person by its email and deletes it', async () => {
  mirror.hold({ operation: 'createProvider', match: { partnerUserId: 'deleted' } });
  await put('deleted');
  await until('the create has arrived', () => mirror.usersOf('deleted').length === 1);
  expect((await service.call('DELETE', '/v1/providers/deleted')).body.sync.state).toBe('deleting');
  await graceOf('deleted');
  await endGrace('deleted');
  await becomes('deleted', 'deleted');
  expect(mirror.usersOf('deleted')).toEqual([]);
});
