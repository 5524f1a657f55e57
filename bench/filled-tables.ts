import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { explainEverything, loggedPlans, logSize, OBSERVER } from '../harness/auto-explain.js';
import { fullReadsOf, GROWING } from '../harness/hot-statements.js';
import { Programs } from '../harness/program.js';
import { fillTo } from '../harness/query-plans.js';
import { READY, type Service, serviceOf } from '../harness/service.js';
import { readAsOperator, runWorkload, type Target } from '../harness/workload.js';
import { buildSimulator, DEFAULT_API_KEY } from '../simulator/app.js';
import type { BenchRow } from './bench-row.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { IDLE_SETTINGS } from './service-process.js';

const ROWS = 1_000_000;
/** People and sessions of the workload whose rows are multiplied, and of the one whose plans are read. */
const [FIRST, SECOND] = [100, 25];
const [ADMIN_KEY, SECRET] = [randomBytes(24).toString('hex'), randomBytes(24).toString('hex')];

/**
 * How PostgreSQL does every statement of a day with a million rows in each table that grows, when it knows nothing of
 * them: its statistics are those of the first day's hundreds, and autovacuum is off.
 */
export async function benchFilledTables(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url, home) => {
    const simulator = await buildSimulator({
      settings: { stepMs: 0, webhookSecret: SECRET, callsPerWindow: 6_000, webhookTimeoutMs: 60_000 },
    });
    const database = new pg.Client({ connectionString: url, application_name: OBSERVER });
    await database.connect();
    const programs = new Programs();
    const during = async (work: (target: Target) => Promise<unknown>) => {
      const service = await start(programs, url, simulator.url);
      await work({ service, simulator, database, adminKey: ADMIN_KEY });
      await service.kill('SIGTERM');
    };
    try {
      await database.query('ALTER SYSTEM SET autovacuum = off');
      await database.query('SELECT pg_reload_conf()');
      await during((target) => runWorkload(target, 'a', FIRST, FIRST));
      await database.query('ANALYZE');
      for (const table of GROWING) await fillTo(ROWS, database, table);
      await explainEverything(database);
      const from = await logSize(home);
      await during(async (target) => {
        await runWorkload(target, 'b', SECOND, SECOND);
        await readAsOperator(target);
      });
      const plans = await loggedPlans(home, from);
      const reads = await fullReadsOf(database, plans);
      for (const [statement, whole] of reads) console.log(`  reads all of ${whole.join(', ')}: ${statement}`);
      return rowsOf(new Set(plans.map(({ text }) => text)).size, reads.length);
    } finally {
      await programs.killAll();
      await database.end();
      await simulator.close();
    }
  });
}

function rowsOf(statements: number, whole: number): BenchRow[] {
  const filled = `${GROWING.length} tables of ${ROWS.toLocaleString('en')} rows, statistics of hundreds`;
  return [
    { name: `${filled}: statements of a day`, value: statements, unit: '' },
    { name: '… that read one of them from end to end', value: whole, unit: '', target: '0', ok: whole === 0 },
  ];
}

async function start(programs: Programs, databaseUrl: string, platformUrl: string): Promise<Service> {
  const env = {
    ...IDLE_SETTINGS,
    PLATFORM_BASE_URL: platformUrl,
    PLATFORM_API_KEY: DEFAULT_API_KEY,
    PLATFORM_WEBHOOK_SECRET: SECRET,
    PLATFORM_CONTRACT: 'simulator/contract.json',
    ADMIN_API_KEY: ADMIN_KEY,
    DATABASE_URL: databaseUrl,
    USER_MANAGEMENT_CALLS_PER_MINUTE: '6000',
  };
  return serviceOf(await programs.start({ file: 'dist/src/main.js', env, ready: READY }), ADMIN_KEY);
}
