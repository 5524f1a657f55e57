import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { startTcpProxy, type TcpProxy } from '../../harness/tcp-proxy.js';
import { until } from '../../harness/until.js';
import { Database } from '../../src/database/database.js';
import { WEBHOOK_SECRET } from '../support/app.js';
import { many, providerLine, providersCsv } from '../support/bulk.js';
import { backendPid, freshDatabase, pidsBlockedBy, type TestDatabase } from '../support/databases.js';
import { partIs } from '../support/health.js';
import { useMirrors } from '../support/service.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';

async function throughProxy(database: TestDatabase): Promise<{ proxy: TcpProxy; url: string }> {
  const url = new URL(database.url);
  const proxy = await startTcpProxy(Number(url.port));
  url.port = String(proxy.port);
  return { proxy, url: url.toString() };
}

describe('a statement over many rows', () => {
  let home: TestDatabase;
  let proxy: TcpProxy;
  let database: Database;

  beforeAll(async () => {
    home = await freshDatabase();
    const { proxy: started, url } = await throughProxy(home);
    proxy = started;
    database = new Database(url);
    await home.sql.query('CREATE TABLE held (id int PRIMARY KEY); INSERT INTO held VALUES (1)');
  });

  afterAll(async () => {
    await database.onApplicationShutdown();
    await proxy.close();
    await home.drop();
  });

  /** Looks over a working connection, such as one that was made after the silence. */
  const look = async () => {
    await database.pool.query('SELECT 1').catch(() => undefined);
    await database.silence.look().catch(() => undefined); // this connection may be silent, too
  };
  const bulk = (work: (tx: pg.PoolClient) => Promise<unknown>) =>
    database.transaction(work, 'bulk').then(
      () => 'done',
      () => 'failed',
    );

  test.each(['before', 'during'] as const)(
    'fails at the second look when its connection falls silent %s it, and its locks end',
    async (when) => {
      const holder = await home.sql.connect();
      await holder.query('BEGIN; SELECT pg_advisory_xact_lock(1)');
      const work = bulk(async (tx) => {
        await tx.query('SELECT FROM held FOR UPDATE');
        if (when === 'before') proxy.silence();
        await tx.query('SELECT pg_advisory_xact_lock(1)');
      });
      if (when === 'during') {
        const pid = await backendPid(holder);
        await until('it waits', async () => (await pidsBlockedBy(home.sql, pid)).length > 0);
        proxy.silence();
      }
      await holder.query('ROLLBACK');
      holder.release();
      expect(
        await until('it fails', async () => {
          await look();
          return Promise.race([work, delay(100)]);
        }),
      ).toBe('failed');
      await until('its locks end', () =>
        home.sql.query('SELECT FROM held FOR UPDATE NOWAIT').then(
          () => true,
          () => false,
        ),
      );
    },
  );

  test('does not fail while it takes long or waits for a lock', async () => {
    const holder = await home.sql.connect();
    await holder.query('BEGIN; SELECT FROM held FOR UPDATE');
    const work = bulk((tx) => tx.query('SELECT FROM held FOR UPDATE'));
    const pid = await backendPid(holder);
    await until('it waits', async () => (await pidsBlockedBy(home.sql, pid)).length > 0);
    for (let looks = 0; looks < 5; looks += 1) await look();
    await holder.query('ROLLBACK');
    holder.release();
    expect(await work).toBe('done');
  });
});

describe('a service whose PostgreSQL falls silent on every open connection', () => {
  const newMirror = useMirrors();

  test('goes on over new ones: deliveries, reads and imports, and an upload frees its place', async () => {
    const database = await freshDatabase();
    const { proxy, url } = await throughProxy(database);
    const mirror = await newMirror({ database, env: { DATABASE_URL: url } });
    const service = await mirror.start();
    const send = (name: string) => deliver(service, signed(sessionEvent(name), { secret: WEBHOOK_SECRET }));
    const isShown = async (name: string) => (await service.call('GET', `/v1/sessions/${name}`)).status === 200;
    const upload = (prefix: string) =>
      service.startImport('kind=providers', [providersCsv(many(50, prefix).map((id) => providerLine(id)))]);

    await send('before');
    const { id } = await upload('before');
    proxy.silence();
    const uploads = ['during-1', 'during-2', 'during-3', 'during-4'].map((prefix) => upload(prefix));
    expect((await send('after')).status).toBe(204);
    await until('the deliveries are handled', async () => (await isShown('before')) && (await isShown('after')));
    expect((await service.importEnded(id)).state).toBe('completed');
    // Each retries until it is read: as many as there are places, so that one which stayed taken would show.
    for (const { id } of await Promise.all(uploads)) expect((await service.importEnded(id)).state).toBe('completed');
    await partIs(service, 'database', 'ok');
    expect(mirror.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
    expect(await service.kill('SIGTERM')).toBe(0);
    await proxy.close();
  });
});
