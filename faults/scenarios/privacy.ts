import { canary, Searcher } from '../../harness/canaries.js';
import { dumpOf } from '../../harness/database-dump.js';
import { askRedis } from '../../harness/redis-server.js';
import { driveClinical, driveWebhooks } from '../privacy/clinical-drive.js';
import { PrivateEhr } from '../privacy/ehr.js';
import { drivePlatformWords, driveRefusedWrites } from '../privacy/faults-drive.js';
import { findsInFiles } from '../privacy/files.js';
import { driveImports } from '../privacy/imports-drive.js';
import { drivePeople } from '../privacy/people-drive.js';
import { startTalkingPlatform } from '../privacy/talking-platform.js';
import type { Scenario } from '../scenario.js';
import type { World } from '../world.js';

const PLATFORM_KEY = `${canary('PlatformKey')}-4f1c77a09be2`;
const SECRET = `${canary('WebhookSecret')}-9a2b7d60c3e1f8`;
const ADMIN_KEY = `${canary('AdminKey')}-0c8d3b71e6f2a945b1d7`;
const DATA_KEY = Buffer.from(canary('SecretKey').padEnd(32, '7'));

/** The scenario stores it in each server, so that a working search finds at least this. */
const PLANTED = canary('Planted');

/** Answers that contain no names and no texts for any caller. */
const PLACES = {
  feed: '/v1/events?limit=200',
  audit: '/v1/audit?limit=200',
  metrics: '/metrics',
  health: '/health/ready',
  deliveries: '/v1/webhook-deliveries?limit=200',
  capabilities: '/v1/capabilities',
};

/** Statuses that must have occurred. */
const STATUSES = [200, 201, 202, 204, 400, 401, 404, 406, 409, 415, 422, 500, 502, 503, 504];
/** Private words that the platform must have received. */
const SENT = ['FirstP1', 'MailC1', 'Dictated', 'Plan', 'PdfText', 'Recording'];

/** Uses every feature with private words, in successes, rejections and faults, and then searches for them. */
export const privacy: Scenario = {
  name: 'privacy',
  says: 'private words in requests, answers and faults, then searched in tables, logs and the files of all servers',
  minutes: 2.5,
  wanted: {
    platform: { stepMs: 0, webhookSecret: SECRET },
    env: {
      PLATFORM_API_KEY: PLATFORM_KEY,
      PLATFORM_WEBHOOK_SECRET: SECRET,
      ADMIN_API_KEY: ADMIN_KEY,
      DATA_KEYS: `k1:${DATA_KEY.toString('base64')}`,
      FINGERPRINT_KEYS: `k1:${DATA_KEY.toString('base64')}`,
      AUDIT_KEYS: `k1:${DATA_KEY.toString('base64')}`,
      LOG_LEVEL: 'trace',
      PLATFORM_TIMEOUT_SECONDS: '1',
      UNKNOWN_OUTCOME_GRACE_SECONDS: '0',
      COMPLIANCE_REFRESH_AFTER_SECONDS: '0.1',
      PLATFORM_PARTNER_DOMAIN: 'https://recorder.example',
      REDIRECT_ALLOWED_ORIGINS: 'https://ehr.example',
    },
  },
  async run(world) {
    const { oracle, simulator, postgres, redis } = world;
    for (const setting of redis ? ['rdbcompression no', 'auto-aof-rewrite-percentage 0', 'appendonly yes'] : []) {
      await askRedis(redis?.port ?? 0, `CONFIG SET ${setting}`);
    }
    const platform = await startTalkingPlatform(simulator, PLATFORM_KEY);
    try {
      const service = await world.startOne({ PORT: '0', PLATFORM_BASE_URL: platform.url });
      await keepUncompressed(world);
      const { state } = simulator;
      state.settings = { ...state.settings, webhookUrl: `${service.url}/webhooks/platform` };
      const ehr = new PrivateEhr(service.url, ADMIN_KEY, SECRET);
      const made = { body: { name: 'nightly', scopes: ['people:read'] } };
      const { key } = await ehr.get<{ key: string }>('POST', '/v1/api-keys', made);
      await ehr.get('GET', '/v1/clients', { key });
      await drivePeople(ehr);
      await driveImports(ehr);
      const clinical = await driveClinical(ehr, simulator);
      await driveWebhooks(ehr, simulator);
      await drivePlatformWords(ehr, platform, clinical);
      await driveRefusedWrites(ehr, (text) => world.rows(text));

      const searcher = new Searcher({ ...clinical.secrets, 'API key': key });
      const texts: Record<string, string> = {};
      for (const [place, path] of Object.entries(PLACES)) texts[place] = (await ehr.ask('GET', path)).text;
      // Callers that may read texts get the platform's message, only in this member.
      texts.refusals = ehr.refusals.map((text) => text.replace(/"platformMessage":"(\\.|[^"\\])*"/, '')).join('\n');
      oracle.same('exit code of a process that is asked to stop', await service.kill('SIGTERM'), 0);
      texts.output = service.output();
      texts.tables = await dumpOf(postgres.url);
      for (const [place, text] of Object.entries(texts)) {
        oracle.none(`${place} is searched`, text.length > 20 ? [] : [text.length]);
        oracle.none(`no private word is found in ${place}`, searcher.finds(text));
      }
      oracle.none('the log has every level', texts.output.includes('"level":"debug"') ? [] : ['debug']);
      oracle.none(
        'every status occurred',
        STATUSES.filter((status) => !ehr.seen.has(status)),
      );
      const sent = searcher.finds(platform.received.join('\n')).join();
      oracle.none(
        'the platform received every kind of private word',
        SENT.filter((name) => !sent.includes(canary(name))),
      );
      await searchFiles(world, searcher);
    } finally {
      await platform.close();
    }
  },
};

/** Stops the servers, so that all data is in their files, and searches them, including WAL and deleted rows. */
async function searchFiles(world: World, searcher: Searcher): Promise<void> {
  const { oracle, redis } = world;
  await world.rows(`CREATE TABLE planted AS SELECT '${PLANTED}' AS word`);
  await world.postgres.release();
  if (redis) {
    await askRedis(redis.port, `SET planted ${PLANTED}`);
    await askRedis(redis.port, 'SAVE');
    await redis.stop();
  }
  const found = await findsInFiles(searcher, world.folder);
  const isPlanted = (find: string) => find.includes(PLANTED);
  oracle.none(
    'no private word is found in the files of the servers',
    found.filter((find) => !isPlanted(find)),
  );
  const servers = new Set(found.filter(isPlanted).map((find) => (find.startsWith('data/') ? 'postgres' : 'redis')));
  oracle.same(
    'the files of every server were searched',
    [...servers].sort(),
    redis ? ['postgres', 'redis'] : ['postgres'],
  );
}

/** Disables compression, which would hide values from a search of files. */
async function keepUncompressed(world: World): Promise<void> {
  await world.rows(`DO $$ DECLARE c record; BEGIN FOR c IN
    SELECT attrelid::regclass AS name, attname AS member FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0 AND attlen = -1 AND attstorage <> 'p' AND NOT attisdropped
    LOOP EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STORAGE EXTERNAL', c.name, c.member); END LOOP; END $$`);
}
