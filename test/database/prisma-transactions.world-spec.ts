import { randomUUID } from 'node:crypto';
import { Database } from '../../src/database/database.js';
import { PrismaService, toBytes } from '../../src/database/prisma.service.js';
import { isDatabaseUnavailable } from '../../src/errors/database-fault.js';
import { codeOf } from '../../src/errors/error-code.js';
import type { Prisma } from '../../src/generated/prisma/client.js';
import { problemOf } from '../../src/http/problem/fault.js';
import { useWorld } from '../world/use-world.js';

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

describe('Prisma in a transaction of the database', () => {
  const world = useWorld();
  let database: Database;
  let prisma: PrismaService;

  beforeEach(() => {
    database = world.get(Database);
    prisma = world.get(PrismaService);
  });

  const named = (name: string): Promise<number> => prisma.apiKey.count({ where: { name } });

  test('SQL and Prisma share one transaction, which others see only after its COMMIT', async () => {
    await database.transaction(async (tx) => {
      const inside = await prisma.in(tx);
      await inside.apiKey.create({ data: key('joined') });
      await tx.query(`UPDATE api_keys SET name = 'renamed' WHERE name = 'joined'`);
      expect(await inside.apiKey.count({ where: { name: 'renamed' } })).toBe(1);
      expect(await prisma.in(tx)).toBe(inside);
      // Prisma batches findUnique calls of one tick: outside and inside must not be served together.
      const { id } = await inside.apiKey.findFirstOrThrow({ where: { name: 'renamed' } });
      const [out, again] = await Promise.all([
        prisma.apiKey.findUnique({ where: { id } }),
        inside.apiKey.findUnique({ where: { id } }),
      ]);
      expect([out, again?.name]).toEqual([null, 'renamed']);
    });
    expect(await named('renamed')).toBe(1);
  });

  test('a ROLLBACK removes what Prisma wrote, and the connection serves the next transaction', async () => {
    const failed = database.transaction(async (tx) => {
      await (await prisma.in(tx)).apiKey.create({ data: key('rolled back') });
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await named('rolled back')).toBe(0);
    for (let round = 0; round < 40; round++)
      await database.transaction(async (tx) => void (await (await prisma.in(tx)).apiKey.count()));
  });

  test('the client fails after the end of its transaction', async () => {
    const left = await database.transaction((tx) => prisma.in(tx).then((client) => [client]));
    await expect(left[0]?.apiKey.create({ data: key('late') })).rejects.toThrow();
    expect(await named('late')).toBe(0);
  });

  test('more transactions than connections all end', async () => {
    const one = (name: string) =>
      database.transaction(async (tx) => {
        await (await prisma.in(tx)).apiKey.create({ data: key(name) });
        await tx.query('SELECT pg_sleep(0.01)');
        return (await prisma.in(tx)).apiKey.count({ where: { name } });
      });
    const counts = await Promise.all(Array.from({ length: 48 }, (_, i) => one(`parallel ${i}`)));
    expect(new Set(counts)).toEqual(new Set([1]));
  });

  test('the victim of a deadlock runs again', async () => {
    const ids = await Promise.all(['a', 'b'].map(async (name) => (await prisma.apiKey.create({ data: key(name) })).id));
    let runs = 0;
    let bothHold = () => {};
    const held = new Promise<void>((resolve) => {
      bothHold = resolve;
    });
    let holders = 0;
    const cross = (first: string, second: string) =>
      database.transaction(async (tx) => {
        runs += 1;
        const inside = await prisma.in(tx);
        await inside.apiKey.update({ where: { id: first }, data: { name: 'crossed' } });
        holders += 1;
        if (holders === 2) bothHold();
        await held;
        await inside.apiKey.update({ where: { id: second }, data: { name: 'crossed' } });
      });
    await Promise.all([cross(ids[0] as string, ids[1] as string), cross(ids[1] as string, ids[0] as string)]);
    expect(runs).toBeGreaterThanOrEqual(3); // the second run may meet the other transaction again
    expect(await named('crossed')).toBe(2);
  });

  test('errors have the codes of PostgreSQL and quote no value', async () => {
    const taken = key('taken');
    await prisma.apiKey.create({ data: taken });
    const twice = await faultOf(prisma.apiKey.create({ data: taken }));
    expect(codeOf(twice)).toBe('23505');
    const nul = await faultOf(prisma.apiKey.create({ data: key('secret \0') }));
    expect([problemOf(nul)?.type, String((nul as Error).message).includes('secret')]).toEqual(['bad-value', false]);
    const cut = await faultOf(
      database.transaction(async (tx) => {
        const { rows } = await tx.query('SELECT pg_backend_pid() AS pid');
        await database.pool.query('SELECT pg_terminate_backend($1)', [rows[0].pid]);
        await (await prisma.in(tx)).apiKey.count();
      }),
    );
    expect(isDatabaseUnavailable(cut)).toBe(true);
  });
});
