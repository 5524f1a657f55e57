import { chmodSync, mkdtempSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { killPostmaster } from '../harness/postmaster.js';
import { sumOfOutcomes } from '../harness/service.js';
import { until } from '../harness/until.js';
import { SeededRandom } from '../simulator/seeded-random.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/database/embedded-postgres.js';
import { describeOnBothBackends } from './support/backends.js';
import { clientLine, clientsCsv, everybody, many, providerLine, providersCsv, rowsOf } from './support/bulk.js';
import { createDatabase } from './support/databases.js';
import { useMirrors } from './support/service.js';

/** Kills in one run, and what all chance comes from. */
const KILLS = Number(process.env.ROUNDS ?? 3);
const SEED = Number(process.env.SEED);

const PROVIDERS = many(80, 'p');
/** Every other client has no email: were the answer to its create lost, somebody would have to review it. */
const CLIENTS = many(40, 'c').map((id, n) => ({ id, email: n % 2 ? `${id}@example.org` : '', provider: `p-${n + 1}` }));
const PEOPLE = PROVIDERS.length + CLIENTS.length;
/** Calls that the import surely takes: a check for whoever has an email, and a create. */
const CALLS = PEOPLE + PROVIDERS.length + CLIENTS.length / 2;

let postgres: EmbeddedPostgres;

beforeAll(async () => {
  const folder = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'killed-'));
  chmodSync(folder, 0o755); // PostgreSQL may run as another user
  // What a killed server had written is still with the system: only a power cut would need it synced.
  postgres = await startEmbeddedPostgres({ dataRoot: folder, fsync: false });
});
afterAll(() => postgres.release());

describeOnBothBackends(`an import of ${PEOPLE} people in which PostgreSQL is killed ${KILLS} times`, (backend) => {
  const newMirror = useMirrors();

  test('completes by itself, and every answer of the platform is kept', async () => {
    console.log(`seed ${SEED}, ${backend.name}`);
    const random = new SeededRandom(SEED);
    const database = await createDatabase(postgres.url);
    const mirror = await newMirror({ backend, database, calls: 3_000, platform: { latencyMs: [0, 150] } });
    const [service, worker] = await Promise.all([mirror.start(), mirror.start({ ROLES: 'worker' })]);
    const { id } = await service.startImport('kind=clients', [
      providersCsv(PROVIDERS.map((provider) => providerLine(provider))),
      clientsCsv(CLIENTS.map((client) => clientLine(client.id, [client.provider], client.email))),
    ]);
    for (let kill = 0; kill < KILLS; kill++) {
      const calls = ((kill + random.fraction()) * CALLS) / KILLS;
      await until(`${Math.ceil(calls)} calls have arrived`, () => mirror.arrivals() >= calls);
      await delay(random.fraction() * 60); // mostly while a call is under way
      killPostmaster(postgres.home);
    }
    const ended = await service.importEnded(id);

    expect(await rowsOf(service, id).then((rows) => rows.filter(({ outcome }) => outcome !== 'created'))).toEqual([]);
    expect([ended.state, ended.counts.created, sumOfOutcomes(ended)]).toEqual(['completed', PEOPLE, PEOPLE]);
    expect((await everybody(service)).filter(({ sync }) => sync.state !== 'synced')).toEqual([]);
    const { users, arrivals } = mirror.simulator.state;
    expect(users.list()).toHaveLength(PEOPLE);
    expect(users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
    expect(mirror.arrivals('createProvider') + mirror.arrivals('createClient')).toBe(PEOPLE);
    expect(arrivals.stats(60).userManagement.rateLimited).toBe(0);
    expect(await callsWithoutAnswer(database.url)).toBe(0);
    // Nobody left of himself on the way.
    expect(await Promise.all([service.kill('SIGTERM'), worker.kill('SIGTERM')])).toEqual([0, 0]);
  });
});

async function callsWithoutAnswer(databaseUrl: string): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query('SELECT count(*)::int AS open FROM platform_calls WHERE answered_at IS NULL');
  await client.end();
  return rows[0].open;
}
