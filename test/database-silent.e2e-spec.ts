import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Service } from '../harness/service.js';
import { startTcpProxy, type TcpProxy } from '../harness/tcp-proxy.js';
import { until } from '../harness/until.js';
import { ANSWER_TIMEOUT_MS, Database } from '../src/database/database.js';
import { StagingRepository } from '../src/imports/upload/staging.repository.js';
import type { HealthReport } from '../src/operations/health-checks.js';
import { WEBHOOK_SECRET } from './support/app.js';
import { many, providerLine, providersCsv } from './support/bulk.js';
import { backendPid, freshDatabase, pidsBlockedBy, type TestDatabase } from './support/databases.js';
import { type ImportsApp, startImports } from './support/imports-app.js';
import { type Mirror, useMirrors } from './support/service.js';
import { deliver, sessionEvent, signed } from './support/webhook-requests.js';

/** What a silence of all open connections may cost, in milliseconds. */
const SILENCE_COSTS_MS = 15_000;

async function throughProxy(database: TestDatabase): Promise<{ proxy: TcpProxy; url: string }> {
  const url = new URL(database.url);
  const proxy = await startTcpProxy(Number(url.port));
  url.port = String(proxy.port);
  return { proxy, url: url.toString() };
}

describe('a statement over many rows whose connection falls silent', () => {
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

  /** Looks over connections that work, as those do that are made after a silence. */
  const look = async () => {
    await database.pool.query('SELECT 1').catch(() => undefined);
    await database.silence.look().catch(() => undefined); // its own connection may be silent, too
  };
  const bulk = (work: (tx: pg.PoolClient) => Promise<unknown>) =>
    database.transaction(work, 'bulk').then(
      () => 'done',
      () => 'failed',
    );

  test('before it arrives, or before its answer does, it fails at the second look, and its locks end', async () => {
    for (const when of ['before', 'during'] as const) {
      const holder = await home.sql.connect();
      await holder.query('BEGIN; SELECT pg_advisory_xact_lock(1)');
      const work = bulk(async (tx) => {
        await tx.query('SELECT FROM held FOR UPDATE');
        if (when === 'before') proxy.silence();
        await tx.query('SELECT pg_advisory_xact_lock(1)');
      });
      if (when === 'during') {
        const pid = await backendPid(holder);
        await until('it is at work', async () => (await pidsBlockedBy(home.sql, pid)).length > 0);
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
    }
  });

  test('is not taken for one that takes long, or waits for somebody', async () => {
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

describe('an upload whose connection falls silent', () => {
  let home: TestDatabase;
  let proxy: TcpProxy;
  let app: ImportsApp;

  beforeAll(async () => {
    home = await freshDatabase();
    const through = await throughProxy(home);
    proxy = through.proxy;
    app = await startImports(through.url);
  });

  afterAll(async () => {
    await app.close();
    await proxy.close();
    await home.drop();
  });

  const file = providersCsv(many(1_200, 'p').map((id) => providerLine(id)));
  const upload = () => app.stage({ kind: 'providers', dryRun: true }, [file]);
  const outcome = (uploading: Promise<string>) =>
    uploading.then(
      () => 'read',
      () => 'failed',
    );

  test.each([
    ['before it begins', async () => proxy.silence()],
    [
      'while its rows are stored',
      async () => {
        const staging = app.app.get(StagingRepository);
        const store = staging.storeRows.bind(staging);
        jest.spyOn(staging, 'storeRows').mockImplementationOnce(async (...rows) => {
          await store(...rows);
          proxy.silence();
        });
      },
    ],
  ])('%s fails in time, and its place is free again', async (_, silence) => {
    await until('one is read', async () => (await outcome(upload())) === 'read');
    await silence();
    expect(await outcome(upload())).toBe('failed');
    // Other connections fell silent as well.
    await until('all places are free', async () =>
      (await Promise.all([1, 2, 3, 4].map(() => outcome(upload())))).every((one) => one === 'read'),
    );
  });
});

describe('a service whose PostgreSQL falls silent on every open connection', () => {
  const newMirror = useMirrors();
  let mirror: Mirror;
  let proxy: TcpProxy;
  let service: Service;

  beforeAll(async () => {
    const database = await freshDatabase();
    const through = await throughProxy(database);
    proxy = through.proxy;
    mirror = await newMirror({ database, env: { DATABASE_URL: through.url } });
    service = await mirror.start();
  });
  afterAll(() => proxy.close());

  const send = (name: string) => deliver(service, signed(sessionEvent(name), { secret: WEBHOOK_SECRET }));
  const isShown = async (name: string) => (await service.call('GET', `/v1/sessions/${name}`)).status === 200;
  const database = async () => {
    const { body } = await service.call<HealthReport>('GET', '/health/ready');
    return body.checks.database?.status;
  };

  test('goes on over new ones: deliveries are handled, reads are answered, imports complete', async () => {
    const content = ['externalId,email,firstName,lastName']
      .concat(Array.from({ length: 50 }, (_, n) => `p-${n},p-${n}@example.org,Pia,N${n}`))
      .join('\n');
    for (const round of [1, 2]) {
      await send(`before-${round}`);
      const { id } = await service.startImport('kind=providers', [
        { name: 'providers.csv', type: 'text/csv', content },
      ]);
      proxy.silence();
      expect((await send(`after-${round}`)).status).toBe(204);
      await until('the deliveries are handled', async () => {
        return (await isShown(`before-${round}`)) && (await isShown(`after-${round}`));
      });
      expect((await service.importEnded(id)).state).toBe('completed');
      await until('its health is well', async () => (await database()) === 'ok');
    }
    expect(mirror.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
    expect(await service.kill('SIGTERM')).toBe(0);
  });

  test('waits for none of them longer than a silence may cost', () => {
    expect(ANSWER_TIMEOUT_MS).toBeLessThan(SILENCE_COSTS_MS);
  });
});
