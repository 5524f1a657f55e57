import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type pg from 'pg';
import { askRedis, findRedisServer, type RedisServer, startRedis } from '../harness/redis-server.js';
import { startEmbeddedPostgres } from '../src/database/embedded-postgres.js';
import { dumpOf } from './support/database-dump.js';
import { createDatabase } from './support/databases.js';
import { canary, Searcher } from './support/privacy/canaries.js';
import { driveClinical, driveWebhooks } from './support/privacy/clinical-drive.js';
import { PrivateEhr } from './support/privacy/ehr.js';
import { drivePlatformWords, driveRefusedWrites } from './support/privacy/faults-drive.js';
import { findsInFiles } from './support/privacy/files.js';
import { driveImports } from './support/privacy/imports-drive.js';
import { drivePeople } from './support/privacy/people-drive.js';
import { startTalkingPlatform } from './support/privacy/talking-platform.js';
import { useMirrors } from './support/service.js';

const PLATFORM_KEY = `${canary('PlatformKey')}-4f1c77a09be2`;
const WEBHOOK_SECRET = `${canary('WebhookSecret')}-9a2b7d60c3e1f8`;
const ADMIN_KEY = `${canary('AdminKey')}-0c8d3b71e6f2a945b1d7`;
const DATA_KEY = Buffer.from(canary('DataKey').padEnd(32, '7'));

/** Put by the test itself wherever files are searched, so that a search that finds nothing else has found this. */
const PLANTED = canary('Planted');

/** What everything looks like from outside once all is done. */
interface Evidence {
  /** By where it is from. */
  readonly texts: Readonly<Record<string, string>>;
  readonly statuses: ReadonlyMap<number, number>;
  /** Secrets that the service or the platform drew. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly platformWasTold: string;
}

const newMirror = useMirrors();

/** Drives every feature, and stops all servers, so that their files hold what they know. */
async function everything(folder: string, redis: RedisServer | undefined): Promise<Evidence> {
  const postgres = await startEmbeddedPostgres({ dataRoot: path.join(folder, 'postgres'), fsync: false });
  const database = await createDatabase(postgres.url);
  const mirror = await newMirror({
    database: { ...database, drop: async () => {} },
    platform: { stepMs: 0, webhookSecret: WEBHOOK_SECRET },
  });
  const platform = await startTalkingPlatform(mirror.simulator, PLATFORM_KEY);
  const service = await mirror.start({
    PLATFORM_BASE_URL: platform.url,
    PLATFORM_API_KEY: PLATFORM_KEY,
    PLATFORM_WEBHOOK_SECRET: WEBHOOK_SECRET,
    ADMIN_API_KEY: ADMIN_KEY,
    DATA_KEYS: `k1:${DATA_KEY.toString('base64')}`,
    REDIS_URL: redis?.url ?? '',
    LOG_LEVEL: 'trace',
    PLATFORM_TIMEOUT_SECONDS: '1',
    UNKNOWN_OUTCOME_GRACE_SECONDS: '0',
    COMPLIANCE_REFRESH_AFTER_SECONDS: '0.1',
    PLATFORM_PARTNER_DOMAIN: 'https://recorder.example',
    REDIRECT_ALLOWED_ORIGINS: 'https://ehr.example',
  });
  await keepUncompressed(database.sql);
  const { state } = mirror.simulator;
  state.settings = { ...state.settings, webhookUrl: `${service.url}/webhooks/platform` };

  const ehr = new PrivateEhr(service.url, ADMIN_KEY, WEBHOOK_SECRET);
  const made = { body: { name: 'nightly', scopes: ['people:read'] } };
  const { key } = await ehr.get<{ key: string }>('POST', '/v1/api-keys', made);
  await ehr.get('GET', '/v1/clients', { key });
  await drivePeople(ehr);
  await driveImports(ehr);
  const clinical = await driveClinical(ehr, mirror.simulator);
  await driveWebhooks(ehr, mirror.simulator);
  await drivePlatformWords(ehr, platform, clinical);
  await driveRefusedWrites(ehr, database.sql);

  const texts: Record<string, string> = {};
  for (const [place, where] of Object.entries(OPEN_TO_SCOPES_WITHOUT_TEXT))
    texts[place] = (await ehr.ask('GET', where)).text;
  // Whoever may read texts is told the platform's own words, and in this member alone.
  texts.refusals = ehr.refusals.map((text) => text.replace(/"platformMessage":"(\\.|[^"\\])*"/, '')).join('\n');
  await service.kill('SIGTERM');
  texts.output = service.output();
  texts.tables = await dumpOf(database.url);
  await database.sql.query(`CREATE TABLE planted AS SELECT '${PLANTED}' AS word`);
  await database.sql.end();
  await postgres.release();
  if (redis) {
    await askRedis(redis.port, `SET planted ${PLANTED}`);
    await askRedis(redis.port, 'SAVE');
    await redis.stop();
  }
  await platform.close();
  const secrets = { ...clinical.secrets, 'API key': key };
  return { texts, statuses: ehr.seen, secrets, platformWasTold: platform.received.join('\n') };
}

/** Answers that hold neither a name nor a text, whoever asks. */
const OPEN_TO_SCOPES_WITHOUT_TEXT = {
  feed: '/v1/events?limit=200',
  audit: '/v1/audit?limit=200',
  metrics: '/metrics',
  health: '/health/ready',
  deliveries: '/v1/webhook-deliveries?limit=200',
  rejections: '/v1/webhook-rejections',
  capabilities: '/v1/capabilities',
};

/** Compressed values would hide what they hold from whoever searches files. */
async function keepUncompressed(sql: pg.Pool): Promise<void> {
  await sql.query(`DO $$ DECLARE c record; BEGIN FOR c IN
    SELECT attrelid::regclass AS name, attname AS member FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0 AND attlen = -1 AND attstorage <> 'p' AND NOT attisdropped
    LOOP EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STORAGE EXTERNAL', c.name, c.member); END LOOP; END $$`);
}

/** A Redis that keeps all that it is told in plain files. */
async function startPlainRedis(folder: string): Promise<RedisServer | undefined> {
  const program = findRedisServer();
  if (!program) return undefined;
  mkdirSync(folder);
  const redis = await startRedis(program, folder);
  for (const setting of ['rdbcompression no', 'auto-aof-rewrite-percentage 0', 'appendonly yes']) {
    expect(await askRedis(redis.port, `CONFIG SET ${setting}`)).toBe('+OK');
  }
  return redis;
}

test('the search finds a word in every spelling, and a secret', () => {
  const word = canary('Word');
  const holes = [
    word,
    word.toUpperCase(),
    word.toLowerCase(),
    Buffer.from(word).toString('hex'),
    JSON.stringify(`"é${word}`),
  ]
    .concat(encodeURIComponent(`ä ${word}@x`), JSON.stringify({ a: JSON.stringify(`\n${word}`) }))
    .concat(['', 'a', 'ab', 'abc'].map((before) => Buffer.from(`${before}${word} and more`).toString('base64url')));
  const searcher = new Searcher({ token: 'f3a9c1d27b' });
  for (const hole of [...holes, 'xf3a9c1d27b', Buffer.from('a f3a9c1d27b b').toString('base64')]) {
    expect([hole, searcher.finds(`x ${hole} y`).length]).toEqual([hole, 1]);
  }
  expect(searcher.finds('Zeisig q7')).toEqual([]);
});

const BACKENDS = process.env.TEST_REDIS_URL ? ['PostgreSQL', 'Redis'] : ['PostgreSQL'];

describe.each(BACKENDS)('with queues on %s, after all that can be asked, refused and broken', (backend) => {
  let folder: string;
  let evidence: Evidence;
  let searcher: Searcher;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'notebridge-privacy-'));
    chmodSync(folder, 0o711); // PostgreSQL may run as another user
    evidence = await everything(
      folder,
      backend === 'Redis' ? await startPlainRedis(path.join(folder, 'redis')) : undefined,
    );
    searcher = new Searcher(evidence.secrets);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('all of it happened', () => {
    for (const status of [200, 201, 202, 204, 400, 401, 404, 406, 409, 415, 422, 500, 502, 503, 504]) {
      expect([status, evidence.statuses.has(status)]).toEqual([status, true]);
    }
    const told = searcher.finds(evidence.platformWasTold).join();
    for (const name of ['FirstP1', 'MailC1', 'Dictated', 'Plan', 'PdfText', 'Recording'])
      expect(told).toContain(canary(name));
    expect(evidence.texts.output).toContain('"level":"debug"');
  });

  test.each([...Object.keys(OPEN_TO_SCOPES_WITHOUT_TEXT), 'refusals', 'output', 'tables'])(
    'nobody is found in: %s',
    (place) => {
      const text = evidence.texts[place] ?? '';
      expect(text.length).toBeGreaterThan(20);
      expect(searcher.finds(text)).toEqual([]);
    },
  );

  test('nobody is found in the files of the servers, the write-ahead log and what is deleted among them', async () => {
    const found = await findsInFiles(searcher, folder);
    expect(found.filter((find) => !find.includes(PLANTED))).toEqual([]);
    const files = found.map((find) => find.split('/')[0]);
    expect([...new Set(files)].sort()).toEqual(backend === 'Redis' ? ['postgres', 'redis'] : ['postgres']);
  });
});
