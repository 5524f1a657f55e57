import { randomUUID } from 'node:crypto';
import { Database } from '../../src/database/database.js';
import { after } from '../../src/database/paging.js';
import { PrismaService, type Tx, toBytes } from '../../src/database/prisma.service.js';
import { isDatabaseUnavailable } from '../../src/errors/database-fault.js';
import { codeOf } from '../../src/errors/error-code.js';
import { errorTrace, failureCode } from '../../src/errors/error-trace.js';
import type { Prisma } from '../../src/generated/prisma/client.js';
import { problemOf } from '../../src/http/problem/fault.js';
import { UploadConnectionPool } from '../../src/imports/upload/upload-connections.js';
import { openTransaction } from '../support/open-transaction.js';
import { useWorld } from '../world/use-world.js';

/** Tables whose times have microseconds, because SQL compares them. No row is found or written by what Prisma read of them. */
const READ_BY_SQL = ['imports', 'people'];

const key = (name: string): Prisma.ApiKeyCreateInput => ({
  id: randomUUID(),
  name,
  prefix: 'nb_',
  hash: toBytes(Buffer.from(randomUUID())),
  scopes: { set: [] },
});

/** The reason why a promise rejects. */
const faultOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

const world = useWorld();
let prisma: PrismaService;

beforeEach(() => {
  prisma = world.get(PrismaService);
});

const named = (name: string): Promise<number> => prisma.apiKey.count({ where: { name } });

/** Two transactions, each of which changes a row that the other one has locked. @returns how often their work ran */
async function crossed(change: (tx: Tx, id: string) => Promise<unknown>): Promise<number> {
  const ids = await Promise.all(['a', 'b'].map(async (name) => (await prisma.apiKey.create({ data: key(name) })).id));
  let [runs, holders] = [0, 0];
  let bothHold = () => {};
  const held = new Promise<void>((resolve) => {
    bothHold = resolve;
  });
  const cross = (first: string, second: string) =>
    prisma.transaction(async (tx) => {
      runs += 1;
      await change(tx, first);
      holders += 1;
      if (holders === 2) bothHold();
      await held;
      await change(tx, second);
    });
  const [one, other] = ids as [string, string];
  await Promise.all([cross(one, other), cross(other, one)]);
  return runs;
}

describe('a transaction', () => {
  test('is one for Prisma and SQL, which others see only after its COMMIT', async () => {
    await prisma.transaction(async (tx) => {
      await tx.apiKey.create({ data: key('shared') });
      await prisma.sql(tx).query(`UPDATE api_keys SET name = 'renamed' WHERE name = 'shared'`);
      expect(await tx.apiKey.count({ where: { name: 'renamed' } })).toBe(1);
      expect(await prisma.in(prisma.sql(tx))).toBe(tx);
      // Prisma batches findUnique calls of one tick: outside and inside must not be served together.
      const { id } = await tx.apiKey.findFirstOrThrow({ where: { name: 'renamed' } });
      const [out, again] = await Promise.all([
        prisma.apiKey.findUnique({ where: { id } }),
        tx.apiKey.findUnique({ where: { id } }),
      ]);
      expect([out, again?.name]).toEqual([null, 'renamed']);
    });
    expect(await named('renamed')).toBe(1);
  });

  test('that fails leaves nothing, runs nothing, and its connection serves the next one', async () => {
    const ran = jest.fn();
    const failed = prisma.transaction(async (tx) => {
      await tx.apiKey.create({ data: key('rolled back') });
      prisma.afterCommit(tx, ran);
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect([await named('rolled back'), ran.mock.calls]).toEqual([0, []]);
    for (let round = 0; round < 40; round++) await prisma.transaction((tx) => tx.apiKey.count());
  });

  test('runs what waits for its commit once, after it', async () => {
    const seen: number[] = [];
    const run = () => void named('committed').then((count) => seen.push(count));
    await prisma.transaction(async (tx) => {
      prisma.afterCommit(tx, run);
      prisma.afterCommit(tx, run);
      await tx.apiKey.create({ data: key('committed') });
    });
    await world.eventually('the function has run', () => seen.length > 0);
    expect(seen).toEqual([1]);
  });

  test.each([
    ['Prisma', (tx: Tx) => () => tx.apiKey.create({ data: key('late') })],
    [
      'SQL',
      (tx: Tx) => {
        const sql = prisma.sql(tx);
        return () => sql.query(`INSERT INTO api_keys (id, name) VALUES (gen_random_uuid(), 'late')`);
      },
    ],
  ])('refuses a statement of %s that outlives it, also while its connection serves another one', async (_, made) => {
    const late = await prisma.transaction(async (tx) => [made(tx)]);
    await prisma.transaction(async (tx) => {
      await tx.apiKey.create({ data: key('next') });
      await expect(late[0]?.()).rejects.toThrow(/closed|ended|Transaction/i);
    });
    expect([await named('late'), await named('next')]).toEqual([0, 1]);
  });

  test('ends only after a statement that its failed work left running', async () => {
    let isOver = false;
    const failed = prisma.transaction(async (tx) => {
      const left = prisma.sql(tx).query('SELECT pg_catalog.pg_sleep(0.2)');
      void left.then(() => {
        isOver = true;
      });
      throw new Error('the other half of the work failed');
    });
    await expect(failed).rejects.toThrow('the other half');
    expect(isOver).toBe(true);
  });

  test('is not ended by a timeout of Prisma, but by those of PostgreSQL', async () => {
    const begun = jest.spyOn(prisma, '$transaction');
    const slow = prisma.transaction(async (tx) => {
      await tx.$executeRaw`SET LOCAL statement_timeout = '50ms'`;
      await tx.apiKey.create({ data: key('slow') });
      await tx.$queryRaw`SELECT pg_catalog.pg_sleep(10)::text`;
    });
    expect(codeOf(await faultOf(slow))).toBe('57014');
    expect(begun.mock.calls[0]?.[1]).toMatchObject({ timeout: 2 ** 31 - 1, maxWait: 2 ** 31 - 1 });
    expect(await named('slow')).toBe(0);
  });

  test('is independent of the one before, whose options Prisma may have changed', async () => {
    const begin = prisma.$transaction.bind(prisma);
    jest
      .spyOn(prisma, '$transaction')
      .mockImplementation(((work: never, options: object) =>
        begin(work, { ...options }).finally(() => Object.assign(options, { newTxId: 'of a nested one' }))) as never);
    await prisma.transaction((tx) => tx.apiKey.create({ data: key('first') }));
    await prisma.transaction((tx) => tx.apiKey.create({ data: key('second') }));
    expect([await named('first'), await named('second')]).toEqual([1, 1]);
  });

  test('that is running when the process stops is committed as a whole', async () => {
    const { url, shares } = prisma;
    const stopping = new PrismaService(url, shares);
    const { tx, commit } = await openTransaction(stopping);
    await tx.apiKey.create({ data: key('stopping') });
    const stopped = stopping.onApplicationShutdown();
    await stopping.sql(tx).query(`UPDATE api_keys SET name = 'stopped' WHERE name = 'stopping'`);
    await tx.apiKey.create({ data: key('stopped') });
    await commit();
    await stopped;
    expect(await named('stopped')).toBe(2);
  });

  test('more than there are connections all end', async () => {
    const one = (name: string) =>
      prisma.transaction(async (tx) => {
        await tx.apiKey.create({ data: key(name) });
        await tx.$queryRaw`SELECT pg_catalog.pg_sleep(0.01)::text`;
        return tx.apiKey.count({ where: { name } });
      });
    const counts = await Promise.all(Array.from({ length: 48 }, (_, i) => one(`parallel ${i}`)));
    expect(new Set(counts)).toEqual(new Set([1]));
  });

  test.each([
    ['a model', (tx: Tx, id: string) => tx.apiKey.update({ where: { id }, data: { name: 'crossed' } })],
    ['raw SQL', (tx: Tx, id: string) => tx.$executeRaw`UPDATE api_keys SET name = 'crossed' WHERE id = ${id}::uuid`],
    ['pg', (tx: Tx, id: string) => prisma.sql(tx).query(`UPDATE api_keys SET name = 'crossed' WHERE id = $1`, [id])],
  ])('that is the victim of a deadlock in %s runs again', async (_, change) => {
    expect(await crossed(change)).toBeGreaterThanOrEqual(3); // the second run may meet the other transaction again
    expect(await named('crossed')).toBe(2);
  });
});

test('a condition or a value that is undefined is refused, and never means every row', async () => {
  await prisma.apiKey.create({ data: key('kept') });
  const none = {} as { id: string };
  await expect(prisma.apiKey.deleteMany({ where: { id: none.id } })).rejects.toThrow();
  await expect(prisma.apiKey.updateMany({ where: {}, data: { name: none.id } })).rejects.toThrow();
  expect(await named('kept')).toBe(1);
});

test('pages by time give each row once, also of rows of one millisecond', async () => {
  const insert = `INSERT INTO api_keys (id, name, prefix, hash, scopes, created_at)
    SELECT gen_random_uuid(), 'paged', 'nb_', sha256(n::text::bytea), '{}', now() + n * interval '100 microseconds'
    FROM generate_series(1, 40) AS n`;
  await world.sql(insert);
  const seen: string[] = [];
  for (let last: { id: string; createdAt: Date } | undefined, isEnd = false; !isEnd; ) {
    const page: { id: string; createdAt: Date }[] = await prisma.apiKey.findMany({
      where: { name: 'paged', ...(last && after('createdAt', last.createdAt.toISOString(), last.id)) },
      orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
      take: 3,
    });
    seen.push(...page.map(({ id }) => id));
    last = page.at(-1);
    isEnd = last === undefined;
  }
  expect([seen.length, new Set(seen).size]).toEqual([40, 40]);
});

test('no time that Prisma reads has microseconds, which it loses', async () => {
  const tables = await world.sql<{ name: string }>(
    `SELECT DISTINCT table_name AS name FROM information_schema.columns
     WHERE table_schema = 'public' AND data_type LIKE 'timestamp%' AND datetime_precision > 3
       AND table_name <> '_prisma_migrations' ORDER BY name`,
  );
  expect(tables.map(({ name }) => name)).toEqual(READ_BY_SQL);
});

test('errors have the codes of PostgreSQL, and nothing of them that is logged quotes a value', async () => {
  const taken = key('taken');
  await prisma.apiKey.create({ data: taken });
  const twice = await faultOf(prisma.apiKey.create({ data: taken }));
  expect(codeOf(twice)).toBe('23505');
  const nul = await faultOf(prisma.apiKey.create({ data: key('secret \0') }));
  expect(problemOf(nul)?.type).toBe('bad-value');
  const none = {} as { name: string };
  const refused = await faultOf(prisma.apiKey.findMany({ where: { prefix: 'secret', name: none.name } }));
  for (const error of [twice, nul, refused]) {
    expect(error).toBeInstanceOf(Error);
    expect(JSON.stringify([errorTrace(error), failureCode(error)])).not.toContain('secret');
  }
  const cut = await faultOf(
    prisma.transaction(async (tx) => {
      const [row] = await tx.$queryRaw<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
      await prisma.$queryRaw`SELECT pg_terminate_backend(${row?.pid}::int)`;
      await tx.apiKey.count();
    }),
  );
  expect(isDatabaseUnavailable(cut)).toBe(true);
});

describe('a transaction of pg that Prisma joins', () => {
  test('takes back a call that its failed work did not wait for', async () => {
    let left: Promise<unknown> = Promise.resolve();
    const failed = world.get(Database).transaction(async (sql) => {
      left = faultOf((await prisma.in(sql)).apiKey.create({ data: key('left') }));
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    await left;
    expect(await named('left')).toBe(0);
  });

  test('also ends with an upload', async () => {
    const ran = jest.fn();
    let left: Tx | undefined;
    await world.get(UploadConnectionPool).transaction(async (sql) => {
      left = await prisma.in(sql);
      await left.apiKey.create({ data: key('uploaded') });
      prisma.afterCommit(left, ran);
    });
    await expect(left?.apiKey.count()).rejects.toThrow();
    expect([await named('uploaded'), ran.mock.calls.length]).toEqual([1, 1]);
  });

  test('is one for both, and its client fails after the end', async () => {
    const database = world.get(Database);
    const failed = database.transaction(async (sql) => {
      await (await prisma.in(sql)).apiKey.create({ data: key('rolled back') });
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    const ran = jest.fn();
    const left = await database.transaction(async (sql) => {
      const tx = await prisma.in(sql);
      await tx.apiKey.create({ data: key('joined') });
      await sql.query(`UPDATE api_keys SET name = 'renamed' WHERE name = 'joined'`);
      expect(await prisma.in(sql)).toBe(tx);
      expect(prisma.sql(tx)).toBe(sql);
      prisma.afterCommit(tx, ran);
      return [tx];
    });
    await expect(left[0]?.apiKey.create({ data: key('late') })).rejects.toThrow();
    const counts = await Promise.all(['rolled back', 'renamed', 'late'].map(named));
    expect([counts, ran.mock.calls.length]).toEqual([[0, 1, 0], 1]);
  });
});
