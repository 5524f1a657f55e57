import { PrismaService } from '../../src/database/prisma.service.js';
import type { OperationName } from '../../src/platform/contract/operations.js';
import { CallJudge, type Judged, type JudgedCall } from '../../src/platform/pauses/call-judge.js';
import { CallsHealth } from '../../src/platform/pauses/calls-health.js';
import type { Ending } from '../../src/platform/pauses/pause-rule.js';
import { PausesRepository } from '../../src/platform/pauses/pauses.repository.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const OK: Ending = { kind: 'ok', status: 200 };
const NOT_FOUND: Ending = { kind: 'not-found', status: 404 };
const LOST: Ending = { kind: 'unknown-outcome', status: 502 };
const REFUSED_KEY: Ending = { kind: 'unauthorized', status: 401 };
const FORBIDDEN: Ending = { kind: 'unauthorized', status: 403 };
const NOT_ALLOWED: Ending = { kind: 'rejected', status: 405, isWrongAddress: true };

/** A call that the platform answers at once. */
function answer(operation: OperationName, ending: Ending, more: Partial<JudgedCall> = {}): Promise<Judged> {
  const now = world.now();
  const beganAt = new Date(now.getTime() - 1);
  const call = { operation, subject: 's', beganAt, probes: [], refused: null, ...more };
  return world.get(PrismaService).transaction((tx) => world.get(CallJudge).judge(tx, call, ending, now));
}

const verdictOf = async (operation: OperationName, ending: Ending) => (await answer(operation, ending)).verdict;

/** The pauses that a call probes, or undefined if it must not go. */
function admit(operation: OperationName): Promise<string[] | undefined> {
  return world.get(PrismaService).transaction(async (tx) => {
    const pauses = await world.get(PausesRepository).read(tx);
    return world.get(CallJudge).admit(tx, pauses, operation, world.now(), 1_000);
  });
}

const APIS: [OperationName, OperationName, OperationName][] = [
  ['createClient', 'checkUser', 'getSession'],
  ['getSession', 'createSession', 'checkUser'],
];

describe.each(APIS)('calls of %s', (operation, sibling, stranger) => {
  const lost = async () => {
    for (const subject of ['a', 'b', 'c', 'd', 'e']) await answer(operation, LOST, { subject });
  };

  test.each<[string, () => Promise<unknown>]>([
    ['a 429', () => answer(operation, { kind: 'rate-limited', status: 429, retryAfterMs: 5_000 })],
    ['a 401', () => answer(operation, REFUSED_KEY)],
    ['five lost calls', lost],
  ])(`pause ${sibling}, and not ${stranger}, after %s`, async (_, trouble) => {
    await trouble();
    expect(await admit(operation)).toBeUndefined();
    expect(await admit(sibling)).toBeUndefined();
    expect(await admit(stranger)).toEqual([]);
  });

  test.each([FORBIDDEN, NOT_ALLOWED])('pause alone after $status', async (ending) => {
    await answer(operation, ending);
    expect(await admit(operation)).toBeUndefined();
    expect(await admit(sibling)).toEqual([]);
    expect(await admit(stranger)).toEqual([]);
  });

  test(`are not resumed by a success of ${stranger}`, async () => {
    await answer(operation, REFUSED_KEY);
    await world.advance('1 s');
    await answer(stranger, OK);
    expect(await admit(operation)).toBeUndefined();
  });

  test('are admitted one at a time once the pause is over', async () => {
    await answer(operation, REFUSED_KEY);
    await world.advance('5 s');
    expect(await admit(operation)).toHaveLength(1);
    expect(await admit(sibling)).toBeUndefined();
    expect(await admit(stranger)).toEqual([]);
  });
});

describe('a 404 of a path from the contract file', () => {
  test.each(['getSession', 'getProcessingSession'] as const)(
    'of %s means a gone session only where the operation has succeeded',
    async (operation) => {
      await answer('createSession', OK);
      expect(await verdictOf(operation, NOT_FOUND)).toBe('unconfirmed');
      await answer(operation, OK);
      expect(await verdictOf(operation, NOT_FOUND)).toBe('gone');
    },
  );

  test('of createSession is about every request until one succeeds, and about one request afterwards', async () => {
    await answer('getSession', OK);
    expect(await verdictOf('createSession', NOT_FOUND)).toBe('elsewhere');
    await answer('createSession', OK);
    expect(await verdictOf('createSession', NOT_FOUND)).toBe('refused');
  });
});

test('a pause of one API is no reason why calls of the other stop', async () => {
  await answer('getSession', REFUSED_KEY);
  const stopped = () => world.get(CallsHealth).stopped('user-management');
  expect(await stopped()).toBeUndefined();
  await answer('checkUser', REFUSED_KEY);
  expect(await stopped()).toMatchObject({ code: 'platform-unauthorized', values: { operations: 'user management' } });
});

test('a success of sessions does not prove the built-in paths of user management', async () => {
  await answer('getSession', OK);
  expect(await verdictOf('deleteUser', NOT_FOUND)).toBe('doubtful');
  await answer('checkUser', OK);
  expect(await verdictOf('deleteUser', NOT_FOUND)).toBe('gone');
});

test.each([FORBIDDEN, NOT_ALLOWED])(
  'createSession answered $status is about everyone, unless it repeats for one request while others succeed',
  async (ending) => {
    expect(await verdictOf('createSession', ending)).toBe('elsewhere');
    const refused = { operation: 'createSession', code: ending.status ?? 0, at: world.now(), hasFailed: false };
    await world.advance('1 s');
    await answer('createSession', OK);
    expect(await verdictOf('createSession', ending)).toBe('elsewhere');
    expect((await answer('createSession', ending, { refused })).verdict).toBe('personal');
  },
);
