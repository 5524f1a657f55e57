import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { startPostgres } from '../../harness/postgres-server.js';
import { findRedisServer } from '../../harness/redis-server.js';
import { runScenario } from '../run-scenario.js';
import type { Scenario } from '../scenario.js';
import { faultsUnderWork } from '../workload/everyday-work.js';
import type { Setting } from '../world.js';
import { debianServer } from './debian-server.js';
import { postgresPrograms, startPgBouncer } from './postgres-server.js';

/** One line of the table in docs/operations/stores.md. */
interface Store {
  readonly name: string;
  /** Undefined if the store is not installed. */
  readonly setting: Partial<Setting> | '' | undefined;
}

/** A small day: people, sessions, webhooks and the feed, while the service and its store are restarted. */
const everyday: Scenario = {
  name: 'stores',
  says: 'people, sessions and webhooks, while the service and its store are stopped and started',
  minutes: 1,
  wanted: { platform: { latencyMs: [0, 20] } },
  async run(world) {
    await world.processes.start('api,worker');
    await faultsUnderWork(world, { people: 20, sessions: 4 }, [
      () => world.processes.roll({}),
      () => world.restartStore(),
    ]);
  },
};

function stores(): Store[] {
  const postgres = (version: string) => ({
    name: `PostgreSQL ${version}`,
    setting: { startPostgres: (place: string) => startPostgres(postgresPrograms(version), place) },
  });
  const pooled = {
    name: 'PgBouncer, session mode',
    setting: existsSync('/usr/sbin/pgbouncer')
      ? {
          startPostgres: async (place: string) =>
            startPgBouncer(await startPostgres(postgresPrograms('15.18.0'), place), place),
        }
      : undefined,
  };
  const redis = (name: string, redisServer: string | undefined) => ({ name, setting: redisServer && { redisServer } });
  const onPath = findRedisServer();
  const isSeven = onPath && execFileSync(onPath, ['--version'], { encoding: 'utf8' }).includes('v=7.');
  return [
    ...['15.18.0', '16.14.0', '17.10.0', '18.4.0'].map(postgres),
    pooled,
    redis('Redis 7', isSeven ? onPath : undefined),
    redis('Redis 8', debianServer('redis')),
    redis('Valkey 8', debianServer('valkey')),
  ];
}

/** Runs the service on each store that can be installed, and prints a table. @returns true if each works */
export async function runStores(
  only: string | undefined,
  common: Pick<Setting, 'seed' | 'log' | 'onOpen'>,
): Promise<boolean> {
  const lines: string[] = [];
  let isGood = true;
  for (const { name, setting } of stores().filter((store) => store.name.includes(only ?? ''))) {
    if (!setting) {
      lines.push(`${name}: not installed`);
      continue;
    }
    common.log(name);
    const { broken, seconds } = await runScenario(everyday, { ...common, share: 1, ...setting });
    for (const invariant of broken) common.log(`✗ ${invariant}`);
    const works = broken.length === 0;
    isGood &&= works;
    lines.push(`${name}: ${works ? 'works' : 'FAILED'} (${Math.round(seconds)} s)`);
  }
  console.log(`\n${new Date().toISOString().slice(0, 10)}, Node ${process.version}\n${lines.join('\n')}`);
  return isGood;
}
