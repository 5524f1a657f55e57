import pg from 'pg';
import { explainEverything, loggedPlans, logSize, OBSERVER } from '../../harness/auto-explain.js';
import { fullReadsOf, GROWING, longReadsOf, OF_SESSIONS } from '../../harness/hot-statements.js';
import { PushReceiver } from '../../harness/push-receiver.js';
import { fillTo, forgetStatistics, pretendRowCount } from '../../harness/query-plans.js';
import { until } from '../../harness/until.js';
import { readAsOperator, runWorkload } from '../../harness/workload.js';
import { connectionShares } from '../../src/database/connect/connection-shares.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import { FeedReader } from '../../src/feed/feed-reader.js';
import { SubjectIds } from '../../src/feed/subject-ids.js';
import type { Scenario } from '../scenario.js';
import { ADMIN_KEY, type World } from '../world.js';

/** Rows of each growing table, as the planner believes. */
const MILLION = 1_000_000;
/** Actual rows of each: enough that a full read differs from every use of an index. */
const ROWS = 20_000;
/** Maximum rows of sessions that one statement may read, such as for a page of a list with its documents. */
const MAX_READ = 500;
/** Minimum statements for each kind of statistics; fewer mean that the log was not read. */
const MIN_PLANS = 1_000;

/** Kinds of statistics, each with a function that produces it. */
const KNOWLEDGE: Record<string, (admin: pg.Client) => Promise<void>> = {
  'statistics of the first day': async (admin) => {
    for (const table of GROWING) await pretendRowCount(MILLION, admin, { table, analysed: false });
  },
  'no statistics of sessions': async (admin) => {
    for (const table of OF_SESSIONS) await forgetStatistics(admin, table);
  },
  'statistics of a million rows': async (admin) => {
    for (const table of GROWING) await pretendRowCount(MILLION, admin, { table, analysed: true });
  },
};

/** Checks the plan of every statement of a day on large tables, with stale, missing and good statistics. */
export const queryPlans: Scenario = {
  name: 'plans',
  says: 'a day of work on tables of a million rows, with statistics that are stale, missing or good',
  minutes: 2,
  wanted: { platform: { stepMs: 0, webhookTimeoutMs: 60_000 }, calls: 6_000, env: { PLATFORM_TIMEOUT_SECONDS: '60' } },
  async run(world) {
    const admin = new pg.Client({ connectionString: world.postgres.url, application_name: OBSERVER });
    await admin.connect();
    try {
      await admin.query('ALTER SYSTEM SET autovacuum = off');
      await admin.query('SELECT pg_reload_conf()');
      await duringDay(world, admin, 'a', 100, 60);
      await admin.query('ANALYZE');
      for (const table of GROWING) await fillTo(ROWS, admin, table);
      await explainEverything(admin, true);
      for (const [at, [knowledge, learn]] of Object.entries(KNOWLEDGE).entries()) {
        await learn(admin);
        const from = await logSize(world.postgres.home);
        await duringDay(world, admin, `b${at || ''}`, 25, 25);
        await judge(world, admin, knowledge, from);
      }
    } finally {
      await admin.end();
    }
  },
};

/** Runs a day in a new process, whose prepared statements use the current statistics. */
async function duringDay(world: World, admin: pg.Client, day: string, people: number, sessions: number): Promise<void> {
  const service = await world.startOne({ PORT: '0' });
  const receiver = await PushReceiver.start();
  const { body } = await service.call<{ id: string }>('POST', '/v1/subscriptions', { body: { url: receiver.url } });
  const target = { service, simulator: world.simulator, database: admin, adminKey: ADMIN_KEY };
  await runWorkload(target, day, people, sessions);
  if (day !== 'a') {
    await readAsOperator(target);
    await readEventsOfClient(world);
  }
  await until('the events of the day are pushed', () => receiver.taken.length > 0);
  await service.call('DELETE', `/v1/subscriptions/${body.id}`);
  await receiver.close();
  world.oracle.same('exit code of a process that is asked to stop', await service.kill('SIGTERM'), 0);
}

/** The events in a client's export, among many events of others. */
async function readEventsOfClient({ postgres }: World): Promise<void> {
  const prisma = new PrismaService(postgres.url, connectionShares({ DATABASE_CONNECTIONS: 19, ROLES: ['api'] }));
  const feed = new FeedReader(prisma, new SubjectIds());
  for await (const _ of feed.about(['clients/c-b-1', 'sessions/of-no-event']));
  await prisma.onApplicationShutdown();
}

async function judge({ oracle, postgres, setting }: World, admin: pg.Client, knowledge: string, from: number) {
  const plans = await loggedPlans(postgres.home, from);
  setting.log(`${plans.length} plans, ${new Set(plans.map(({ text }) => text)).size} statements; known: ${knowledge}`);
  oracle.none('a day has enough statements', plans.length < MIN_PLANS ? [plans.length] : []);
  oracle.none(`no statement reads a whole table or index (known: ${knowledge})`, await fullReadsOf(admin, plans));
  oracle.none(
    `no statement reads more than ${MAX_READ} rows of sessions (known: ${knowledge})`,
    await longReadsOf(admin, plans, MAX_READ),
  );
}
