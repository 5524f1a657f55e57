import type { Span } from '../../../harness/world/time.js';
import type { TraceResponse } from '../../../src/people/api/trace.dto.js';
import { useWorld } from '../../world/use-world.js';
import { peopleOf } from '../mirroring.js';

const world = useWorld();
const { begin, put, verdict, verdicts, callsDuring, health } = peopleOf(world);

const SYNCED = ['synced', null];
const ALL = ['providers/refused', 'providers/next', 'clients/screen'];
const limit = (more: object = {}) => world.platform.injectFault({ kind: 'rate-limit', ...more });
const pass = async (span: Span) => {
  await world.advance(span);
  await world.settle();
};

beforeEach(() => put('providers/home'));

describe('a 429', () => {
  test.each(['seconds', 'date'] as const)(
    '(Retry-After in %s) stops every call for as long as it says',
    async (retryAfter) => {
      limit({ retryAfter, retryAfterSeconds: 1_800 });
      await put(ALL[0] as string);
      const calls = await callsDuring(async () => {
        for (const path of ALL.slice(1)) await begin(path);
        await pass('10 min');
        await world.restart();
        world.forgetJobs();
        await world.settle();
        expect(await verdict(ALL[0] as string)).toEqual(['pending', 'rate-limited']);
        expect((await health('platform'))?.reason).toContain('The platform answered 429, so calls pause');
        await pass('1198 s');
      });
      expect(calls).toEqual([]);
      await pass('4 s');
      await pass('2 s');
      expect(await verdicts(ALL)).toEqual(ALL.map(() => SYNCED));
      const body = { kind: 'provider', externalId: 'refused' };
      const { history } = (await world.call<TraceResponse>('POST', '/v1/people/trace', { body })).body;
      expect(history.filter(({ status }) => status === 429)).toMatchObject([{ outcome: 'rate-limited' }]);
    },
  );

  test('without Retry-After stops every call for 5 s, doubling to a minute', async () => {
    const from = world.platform.arrivals();
    limit({ retryAfter: 'absent', count: null });
    await begin('providers/refused');
    for (let times = 0; times < 420; times += 1) await pass('500 ms');
    const times = world.platform.simulator.state.arrivals
      .list()
      .slice(from)
      .map(({ at }) => at);
    const waits = times.slice(1).map((at, n) => Math.floor((at - (times[n] as number)) / 1_000));
    const wanted = [5, 10, 20, 40, 60];
    for (const [n, seconds] of wanted.entries()) {
      expect(waits[n]).toBeGreaterThanOrEqual(seconds);
      expect(waits[n]).toBeLessThanOrEqual(seconds + 2);
    }
  });

  test('to calls that are in flight together counts once', async () => {
    const paths = ['providers/a', 'providers/b', 'providers/c', 'providers/d'];
    limit({ retryAfter: 'absent', count: null });
    for (const path of paths) await begin(path);
    expect((await callsDuring(() => world.settle())).length).toBeGreaterThan(1);
    world.platform.release();
    expect(await callsDuring(() => pass('4 s'))).toEqual([]);
    await pass('3 s');
    expect(await verdicts(paths)).toEqual(paths.map(() => SYNCED));
  });

  test('stops every call although another call succeeds 40 ms later, and although a shorter one follows', async () => {
    await begin('providers/earlier');
    const held = await world.untilHeld({ operation: 'createProvider' });
    for (const retryAfterSeconds of [1_800, 1]) limit({ operation: 'checkUser', retryAfterSeconds });
    for (const path of ALL.slice(0, 2)) await begin(path);
    await world.work.people();
    await world.advance('40 ms');
    const calls = await callsDuring(async () => {
      await held.answer();
      expect(await verdict('providers/earlier')).toEqual(SYNCED);
      await begin('clients/screen');
      await pass('1795 s');
    });
    expect(calls).toEqual([]);
    await pass('6 s');
    await pass('2 s');
    expect(await verdicts(ALL)).toEqual(ALL.map(() => SYNCED));
  });

  test('to five clients again and again lets the others call after each pause', async () => {
    limit({ operation: 'createClient', retryAfterSeconds: 5, count: null });
    for (const n of [1, 2, 3, 4, 5]) await begin(`clients/limited-${n}`);
    await world.settle();
    await begin('providers/other');
    await pass('7 s');
    await pass('7 s');
    await pass('7 s');
    expect(await verdict('providers/other')).toEqual(SYNCED);
    world.platform.release();
    await pass('2 min');
    expect(await verdict('clients/limited-5')).toEqual(SYNCED);
  });
});
