import type { FaultKind } from '../../../simulator/gate/fault-rule.js';
import { useWorld } from '../../world/use-world.js';
import { peopleOf } from '../mirroring.js';

const world = useWorld();
const { begin, beginRemoval, put, get, resolve, settled, verdict, verdictOf, callsDuring } = peopleOf(world);

const SYNCED = ['synced', null];
const LOST = ['pending', 'outcome-unknown'];
const usersOf = (externalId: string) => world.platform.usersOf(externalId);
const creates = () => world.platform.arrivals('createProvider');

/** PLATFORM_TIMEOUT_SECONDS and UNKNOWN_OUTCOME_GRACE_SECONDS, and a second more. */
const [TIMEOUT, GRACE] = ['21 s', '60 s'] as const;
const passing = async (span: typeof TIMEOUT | typeof GRACE | '2 s' | '16 s' | '38 s' | '2 min' | '61 min') => {
  await world.advance(span);
  await world.settle();
};

beforeEach(() => put('providers/home'));
afterEach(() => {
  expect(world.platform.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
});

describe('a create of a person with an email that is', () => {
  test.each([
    ['executed after its connection was cut', { kind: 'commit-late', ms: 2_000 }],
    ['answered too late', { kind: 'slow', ms: 3_600_000 }],
  ] as const)('%s is looked up after the grace period and made once', async (_name, rule) => {
    const before = creates();
    world.platform.injectFault({ operation: 'createProvider', ...rule });
    await begin('providers/late');
    const working = world.settle();
    await world.eventually('the create arrives', () => creates() > before);
    await world.advance(TIMEOUT);
    await working;
    expect(await verdict('providers/late')).toEqual(LOST);
    expect(usersOf('late')).toHaveLength(1);
    // Others are served while this one waits.
    expect(verdictOf(await put('providers/other'))).toEqual(SYNCED);
    await passing('38 s');
    expect(await verdict('providers/late')).toEqual(LOST);
    await passing(GRACE);
    expect(await verdict('providers/late')).toEqual(SYNCED);
    expect([creates() - before, usersOf('late').length]).toEqual([2, 1]); // one of them is the other's
  });

  test('lost without effect is made again, after a backoff', async () => {
    world.platform.injectFault({ operation: 'createProvider', kind: 'refuse' });
    const calls = await callsDuring(async () => {
      await put('providers/lost');
      await passing('2 min');
    });
    expect(calls).toEqual(['checkUser', 'createProvider', 'checkUser']);
    expect(await callsDuring(() => passing('16 s'))).toEqual(['createProvider']);
    expect(await verdict('providers/lost')).toEqual(SYNCED);
  });

  test('lost again and again is repeated with a backoff, and has one user at the end', async () => {
    world.platform.injectFault({ operation: 'createProvider', kind: 'refuse', count: 5 });
    await put('providers/lost');
    for (let times = 0; times < 30; times += 1) await passing('2 min');
    expect(creates()).toBeLessThanOrEqual(1 + 6);
    for (let times = 0; times < 3; times += 1) await passing('61 min');
    expect([await verdict('providers/lost'), usersOf('lost').length]).toEqual([SYNCED, 1]);
  });
});

describe('the look-up of a lost create', () => {
  beforeEach(async () => {
    world.platform.injectFault({ operation: 'createProvider', kind: 'commit-then-cut' });
    expect(verdictOf(await put('providers/lost'))).toEqual(LOST);
  });

  test('uses the email that was sent, and a PUT that changes it waits', async () => {
    await begin('providers/lost', { email: 'changed@example.org' });
    await world.settle();
    expect(await callsDuring(() => passing('38 s'))).toEqual([]);
    expect(await callsDuring(() => passing(GRACE))).toEqual(['checkUser']);
    const found = await get('providers/lost');
    expect(verdictOf(found)).toEqual(SYNCED);
    expect(found.sync.notPushable).toEqual(['email']);
    expect(usersOf('lost')).toMatchObject([{ email: 'lost@example.org' }]);
  });

  test('is repeated after a 429 and after a fault, and no second create is sent', async () => {
    const before = creates();
    world.platform.injectFault({ operation: 'checkUser', kind: 'rate-limit', retryAfterSeconds: 30 });
    world.platform.injectFault({ operation: 'checkUser', kind: 'status', status: 503 });
    await passing('2 min');
    expect((await verdict('providers/lost'))[0]).toBe('pending');
    for (let times = 0; times < 3; times += 1) await passing('2 min');
    expect([await verdict('providers/lost'), creates() - before]).toEqual([SYNCED, 0]);
  });

  test('deletes its user if the EHR has deleted the person meanwhile', async () => {
    await beginRemoval('providers/lost');
    expect((await settled('providers/lost')).sync.state).toBe('deleting');
    await passing('2 min');
    expect([await verdict('providers/lost'), usersOf('lost')]).toEqual([['deleted', null], []]);
  });

  test('happens also after a restart whose queues were wiped', async () => {
    world.forgetJobs();
    await world.restart();
    expect(await callsDuring(() => passing('2 min'))).toEqual(['checkUser']);
    expect(await verdict('providers/lost')).toEqual(SYNCED);
  });

  test('is not needed if an event names the user', async () => {
    const [user] = usersOf('lost');
    const payload = { userId: user?.userId ?? '', externalUserId: 'lost', role: 'HealthcareProvider' as const };
    world.platform.simulator.state.deliveries.send({ eventType: 'USER_CREATED', payload });
    expect(await callsDuring(() => world.settle())).toEqual([]);
    expect(await verdict('providers/lost')).toEqual(SYNCED);
    expect(await callsDuring(() => passing('2 min'))).toEqual([]);
  });
});

describe('a create of a client without an email that is lost', () => {
  test.each<FaultKind>(['commit-then-cut', 'commit-then-500', 'bad-json'])(
    '(%s) waits for a decision',
    async (kind) => {
      world.platform.injectFault({ operation: 'createClient', kind });
      expect(verdictOf(await put('clients/lost'))).toEqual(['needs-review', 'create-unknown']);
      expect(await callsDuring(() => passing('61 min'))).toEqual([]);
      const [user] = usersOf('lost');
      await resolve('clients/lost', { action: 'link', platformUserId: user?.userId });
      expect(verdictOf(await settled('clients/lost'))).toEqual(SYNCED);
      expect(usersOf('lost')).toHaveLength(1);
    },
  );
});

describe('an answer that comes after the time of its call', () => {
  test('still maps a create without an email, which then needs no decision', async () => {
    const { state } = world.platform.simulator;
    world.platform.set({ stepMs: 0 });
    await begin('clients/late');
    const held = await world.untilHeld({ operation: 'createClient' });
    // The process that waits for the answer is taken for dead.
    const another = await world.startAnother({ PLATFORM_TIMEOUT_SECONDS: '5' });
    await world.sql(`UPDATE people SET call_look_up_at = now(), due_at = now() WHERE external_id = 'late'`);
    await world.advance('2 s');
    await another.work.people();
    expect(await verdict('clients/late')).toEqual(['needs-review', 'create-unknown']);
    await held.answer();
    expect(await verdict('clients/late')).toEqual(SYNCED);
    expect(state.users.list().filter(({ partnerUserId }) => partnerUserId === 'late')).toHaveLength(1);
  });
});
