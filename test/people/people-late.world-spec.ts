import { useWorld } from '../world/use-world.js';

const world = useWorld();

const profile = (externalId: string) => ({ email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' });
const put = (externalId: string) => world.call('PUT', `/v1/providers/${externalId}`, { body: profile(externalId) });
const verdict = async (externalId: string) => {
  const { sync } = (await world.call('GET', `/v1/providers/${externalId}`)).body;
  return [sync.state, sync.error?.code ?? null];
};

/** Just over PLATFORM_TIMEOUT_SECONDS, and UNKNOWN_OUTCOME_GRACE_SECONDS. */
const [TIMEOUT, GRACE] = ['21 s', '60 s'] as const;

test.each([
  ['executed after its connection was cut', { kind: 'commit-late', ms: 2_000 }],
  ['answered too late', { kind: 'slow', ms: 3_600_000 }],
] as const)('a create that is %s is looked up after the grace period and made once', async (_name, rule) => {
  world.platform.injectFault({ operation: 'createProvider', ...rule });
  await put('late');
  const working = world.settle();
  await world.untilCalled('createProvider');
  await world.advance(TIMEOUT);
  await working;
  expect(await verdict('late')).toEqual(['pending', 'outcome-unknown']);
  expect(world.platform.usersOf('late')).toHaveLength(1);

  // Others are served while this one waits.
  world.platform.simulator.state.users.add({ role: 'HealthcareProvider', ...profile('known'), providerUserIds: [] });
  await put('known');
  await world.settle();
  expect(await verdict('known')).toEqual(['synced', null]);
  expect(await verdict('late')).toEqual(['pending', 'outcome-unknown']);
  await world.advance('38 s');
  await world.settle();
  expect(await verdict('late')).toEqual(['pending', 'outcome-unknown']);

  await world.advance(GRACE);
  await world.settle();
  expect(await verdict('late')).toEqual(['synced', null]);
  expect([world.platform.arrivals('createProvider'), world.platform.usersOf('late').length]).toEqual([1, 1]);
});

test('a delete during a create whose answer is lost finds the user by email and deletes it', async () => {
  await put('deleted');
  const held = await world.untilHeld({ operation: 'createProvider' });
  expect(world.platform.usersOf('deleted')).toHaveLength(1);
  expect((await world.call('DELETE', '/v1/providers/deleted')).body.sync.state).toBe('deleting');
  await world.advance(TIMEOUT);
  await held.ended;
  await world.settle();
  expect((await verdict('deleted'))[0]).toBe('deleting');
  await world.advance(GRACE);
  await world.settle();
  expect(await verdict('deleted')).toEqual(['deleted', null]);
  expect(world.platform.usersOf('deleted')).toEqual([]);
});
