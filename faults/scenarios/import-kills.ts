import { request } from 'node:http';
import { LOCKS } from '../../src/database/advisory-locks.js';
import type { Scenario } from '../scenario.js';
import { FeedWatch } from '../workload/feed-watch.js';
import { ImportWork } from '../workload/import-work.js';
import { ADMIN_KEY, type World } from '../world.js';

/** Number of uploads whose reader is killed. */
const READERS = 2;
/** Locks at which a planner is killed: before its first change, and in the middle. A third crash would fail the import. */
const LOCKS_OF_PLANNING = [
  { table: 'import_rows', mode: 'SHARE' },
  { table: 'client_providers', mode: 'ACCESS EXCLUSIVE' }, // which comparing reads
];
/** A lock that only a worker that applies rows waits for. */
const LOCK_OF_APPLYING = { table: 'email_claims', mode: 'SHARE' };
/** Number of processes of any role that are killed during the calls. */
const KILLS = 45;

/** Kills processes that read, plan, apply rows, serve or call in the middle of one import. */
export const importKills: Scenario = {
  name: 'import',
  says: 'SIGKILL of reader, planner, api and workers at 50 moments of an import',
  minutes: 4,
  wanted: { platform: { latencyMs: [0, 60] } },
  async run(world) {
    const kills = world.sized(KILLS, 3);
    const people = Math.max(60, kills * 7);
    const work = new ImportWork(world, { providers: Math.ceil(people / 3), clients: people, known: 10 });
    await world.processes.start('api');
    const readers = world.sized(READERS);
    for (let kill = 0; kill < readers; kill += 1) await killReader(world, work);
    const id = await work.begin();
    const feed = new FeedWatch(world);
    const planning = LOCKS_OF_PLANNING.slice(0, world.sized(LOCKS_OF_PLANNING.length));
    for (const lock of planning) await killAt(world, lock);
    const [planned] = await world.rows<{ state: string }>('SELECT state FROM imports WHERE id = $1', [id]);
    world.oracle.same('a killed planner leaves the import unchanged', planned, { state: 'staging' });
    await killAt(world, LOCK_OF_APPLYING);
    const started = await world.count('import_rows WHERE applied_at IS NOT NULL');
    world.oracle.same('a worker that is killed while applying rows applies none', started, 0);

    for (let worker = 0; worker < 3; worker += 1) await world.processes.add('worker');
    for (let kill = 0; kill < kills; kill += 1) {
      await work.reaches((kill + world.random.fraction()) / kills);
      await world.soon(60);
      await world.processes.killOne();
    }
    await world.processes.up();
    await checkInterruptedUploads(world, id);
    await work.ended(feed);
    await feed.ended();
  },
};

/** Sends a part of the files, and kills the process that is reading them. */
async function killReader(world: World, work: ImportWork): Promise<void> {
  const { processes, random } = world;
  const api = await processes.api();
  const form = new FormData();
  for (const { name, type, content } of work.files) {
    form.append(name.replace('.csv', ''), new Blob([content as string], { type }), name);
  }
  const whole = new Response(form);
  const bytes = Buffer.from(await whole.arrayBuffer());
  const headers = {
    authorization: `Bearer ${ADMIN_KEY}`,
    'content-type': whole.headers.get('content-type') ?? '',
    'content-length': bytes.length,
  };
  const upload = request(`${api.url}/v1/imports?kind=clients`, { method: 'POST', headers });
  upload.on('error', () => undefined); // because its reader is killed
  upload.write(bytes.subarray(0, Math.max(1, Math.floor(random.fraction() * bytes.length))));
  await world.reach('the upload is being read', () =>
    world.count(`pg_locks WHERE locktype = 'advisory' AND objid = ${LOCKS.openUploads} AND granted`),
  );
  await world.soon(60);
  await processes.killOne();
  upload.destroy();
  await processes.up();
}

/** Kills a worker in the middle of its transaction, when it waits for this table. */
async function killAt(world: World, { table, mode }: { table: string; mode: string }): Promise<void> {
  await world.holding(`LOCK TABLE ${table} IN ${mode} MODE`, async () => {
    const worker = await world.startOne({ ROLES: 'worker', PORT: '0' });
    await world.reach(`the worker waits for a lock of ${table}`, async () => {
      return world.count(`pg_locks WHERE NOT granted AND relation = '${table}'::regclass`);
    });
    await worker.kill('SIGKILL');
    world.counts.kills += 1;
  });
}

/** Checks that uploads whose reader was killed leave nothing. */
async function checkInterruptedUploads(world: World, whole: string): Promise<void> {
  world.oracle.same(
    'an upload whose reader is killed leaves nothing',
    await world.count(`imports WHERE id <> '${whole}'`),
    0,
  );
}
