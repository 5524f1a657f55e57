import { request } from 'node:http';
import type { Scenario } from '../scenario.js';
import { FeedWatch } from '../workload/feed-watch.js';
import { ImportWork } from '../workload/import-work.js';
import { ADMIN_KEY, type World } from '../world.js';

/** Moments at which somebody is killed, in the whole of it. */
const READERS = 2;
/** Where a planner is held until it is killed: before the plan, in the middle of applying it, and near its end. */
const PLANNED_TABLES = ['import_rows', 'people', 'client_providers'];
const ANYBODY = 45;

/** Whoever reads, plans, serves or calls is killed in the middle of one import. */
export const importKills: Scenario = {
  name: 'import',
  says: 'SIGKILL of reader, planner, api and workers at 50 moments of an import',
  minutes: 4,
  wanted: { platform: { latencyMs: [0, 60] } },
  async run(world) {
    const kills = world.sized(ANYBODY, 3);
    const people = Math.max(60, kills * 7);
    const work = new ImportWork(world, { providers: Math.ceil(people / 3), clients: people, known: 10 });
    await world.crew.staff('api');
    const readers = world.sized(READERS);
    for (let kill = 0; kill < readers; kill += 1) await killReader(world, work);
    const id = await work.begin();
    const feed = new FeedWatch(world);
    for (const table of PLANNED_TABLES.slice(0, world.sized(PLANNED_TABLES.length))) await killPlanner(world, table);
    const [planned] = await world.rows<{ state: string }>('SELECT state FROM imports WHERE id = $1', [id]);
    world.oracle.same('a planner that is killed leaves the import as it was', planned, { state: 'staging' });

    for (let worker = 0; worker < 3; worker += 1) await world.crew.add('worker');
    for (let kill = 0; kill < kills; kill += 1) {
      await work.reaches((kill + world.random.fraction()) / kills);
      await world.soon(60);
      await world.crew.killOne();
    }
    await world.crew.up();
    await brokenOff(world, id, readers);
    await work.ended(feed);
    await feed.ended();
  },
};

/** Sends a part of the files, and kills the process that reads them. */
async function killReader(world: World, work: ImportWork): Promise<void> {
  const { crew, random } = world;
  const api = await crew.api();
  const form = new FormData();
  for (const { name, type, content } of work.files) {
    form.append(name.replace('.csv', ''), new Blob([content as string], { type }), name);
  }
  const whole = new Response(form);
  const bytes = Buffer.from(await whole.arrayBuffer());
  const begun = await world.count('imports');
  const headers = {
    authorization: `Bearer ${ADMIN_KEY}`,
    'content-type': whole.headers.get('content-type') ?? '',
    'content-length': bytes.length,
  };
  const upload = request(`${api.url}/v1/imports?kind=clients`, { method: 'POST', headers });
  upload.on('error', () => undefined); // cut, as it is meant to be
  upload.write(bytes.subarray(0, Math.max(1, Math.floor(random.fraction() * bytes.length))));
  await world.reach('the upload is being read', async () => (await world.count('imports')) > begun);
  await world.soon(60);
  await crew.killOne();
  upload.destroy();
  // A minute without a sign of life is not waited for.
  await world.rows(`UPDATE imports SET alive_at = alive_at - interval '2 minutes' WHERE state = 'staging'`);
  await crew.up();
}

/** Kills a worker in the middle of the transaction that plans and applies: where it writes to this table. */
async function killPlanner(world: World, table: string): Promise<void> {
  await world.holding(`LOCK TABLE ${table} IN SHARE MODE`, async () => {
    const worker = await world.startOne({ ROLES: 'worker', PORT: '0' });
    await world.reach(`the planner comes to ${table}`, async () => {
      return world.count(`pg_locks WHERE NOT granted AND relation = '${table}'::regclass`);
    });
    await worker.kill('SIGKILL');
    world.counts.kills += 1;
  });
}

/** The uploads whose readers were killed have failed, and left nothing behind. */
async function brokenOff(world: World, whole: string, readers: number): Promise<void> {
  const others = () =>
    world.rows<{ state: string; code: string | null; rows: number }>(
      `SELECT state, error_code AS code, (SELECT count(*)::int FROM import_rows r WHERE r.import_id = i.id) AS rows
       FROM imports i WHERE id <> $1`,
      [whole],
    );
  await world.reach('the uploads that broke off are given up', async () => {
    return (await others()).every(({ state }) => state !== 'staging');
  });
  const failed = { state: 'failed', code: 'interrupted', rows: 0 };
  world.oracle.same('an upload that broke off leaves nothing', await others(), Array(readers).fill(failed));
}
