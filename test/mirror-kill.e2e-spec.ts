import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type ImportFile, type Service, sumOfOutcomes } from '../harness/service.js';
import { until } from '../harness/until.js';
import { SeededRandom } from '../simulator/seeded-random.js';
import type { Page } from '../src/http/page.js';
import type { PersonView } from '../src/people/person-view.js';
import { describeOnBothBackends } from './support/backends.js';
import { ADMIN_KEY, type Mirror, useMirrors } from './support/service.js';

/** Kills of who reads. */
const READERS = 2;
/** Where a planner is held until it is killed: before the plan, in the middle of applying it, and near its end. */
const HELD_AT = ['import_rows', 'people', 'client_providers'];
/** Kills of anybody while calls are made: with the others fifty of one import on PostgreSQL, which needs no more to run. */
const KILLS = { PostgreSQL: Number(process.env.ROUNDS ?? 45), Redis: Number(process.env.ROUNDS ?? 20) };
/** What all chance comes from. */
const SEED = Number(process.env.SEED);

const PROVIDERS = 100;
const CLIENTS = 200;
/** Calls that the import surely takes. */
const CALLS = 600;
/** Providers that the platform knows before. */
const KNOWN = 20;
/** Every fourth client has no email, so that a create of it without an answer is left for review. */
const hasEmail = (client: number) => client % 4 !== 0;
const listOf = (client: number) =>
  Array.from({ length: 1 + (client % 3) }, (_, at) => `p-${(client * 7 + at) % PROVIDERS}`);

const providersCsv = csv(
  'externalId,email,firstName,lastName',
  PROVIDERS,
  (n) => `p-${n},p-${n}@example.org,Pia,N${n}`,
);
const clientsCsv = csv('externalId,email,firstName,lastName,providers', CLIENTS, (n) =>
  [`c-${n}`, hasEmail(n) ? `c-${n}@example.org` : '', 'Cleo', `N${n}`, listOf(n).join('|')].join(','),
);

const files: ImportFile[] = [
  { name: 'providers.csv', type: 'text/csv', content: providersCsv },
  { name: 'clients.csv', type: 'text/csv', content: clientsCsv },
];

describeOnBothBackends(
  `an import of ${PROVIDERS + CLIENTS} people whose processes are killed again and again`,
  (backend) => {
    const newMirror = useMirrors();
    const kills = KILLS[backend.name];

    test(`loses nobody by ${READERS + HELD_AT.length + kills} kills, makes nobody twice, and its counts are the truth`, async () => {
      console.log(`seed ${SEED}, ${backend.name}`);
      const random = new SeededRandom(SEED);
      const mirror = await newMirror({ backend, calls: 3_600, platform: { latencyMs: [0, 60] } });
      const { users } = mirror.simulator.state;
      for (let n = 0; n < KNOWN; n++) {
        const names = { firstName: 'Pia', lastName: `N${n}` };
        users.add({ role: 'HealthcareProvider', email: `p-${n}@example.org`, ...names, providerUserIds: [] });
      }
      const sql = new pg.Client({ connectionString: mirror.database.url });
      sql.on('error', () => undefined); // its database goes when the test has failed
      await sql.connect();
      for (let kill = 0; kill < READERS; kill++) await killReader(mirror, sql, random);

      const processes = new Processes(mirror, random);
      const api = await processes.api();
      const { id } = await api.startImport('kind=clients', files);
      for (const table of HELD_AT) await killPlanner(mirror, sql, table);
      expect(
        (await sql.query('SELECT state, (SELECT count(*)::int FROM people) AS people FROM imports WHERE id = $1', [id]))
          .rows,
      ).toEqual([{ state: 'staging', people: 0 }]);

      await processes.fill();
      for (let kill = 0; kill < kills; kill++)
        await processes.killOneAfter(((kill + random.fraction()) * CALLS) / kills);
      await processes.fill();
      const ended = await (await processes.api()).importEnded(id);
      await brokenOff(sql, id);
      await sql.end();
      const cut = await callsWithoutAnswer(mirror.database.url);
      console.log(`${backend.name}: ${cut} calls were cut by a kill; ${JSON.stringify(ended.counts)}`);

      const { counts } = ended;
      expect([ended.state, counts.total, sumOfOutcomes(ended)]).toEqual([
        'completed',
        PROVIDERS + CLIENTS,
        PROVIDERS + CLIENTS,
      ]);
      expect(counts.linked).toBe(KNOWN);
      expect(counts.created + counts.needsReview).toBe(PROVIDERS + CLIENTS - KNOWN);
      expect(counts.needsReview).toBeLessThanOrEqual(kills);
      expect(users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });

      const people = await everybody(await processes.api());
      const platformIds = new Map(people.map((person) => [person.externalId, person.platformUserId]));
      for (const person of people) {
        const user = users.find(person.platformUserId ?? '');
        if (person.sync.state === 'needs-review') {
          expect([person.email, person.sync.error?.code]).toEqual([null, 'create-unknown']);
          continue;
        }
        expect([person.externalId, person.sync.state, user?.lastName]).toEqual([
          person.externalId,
          'synced',
          person.lastName,
        ]);
        expect(user?.providerUserIds).toEqual((person.providers ?? []).map((provider) => platformIds.get(provider)));
      }
      const strangers = users.list().filter(({ userId }) => ![...platformIds.values()].includes(userId));
      expect(strangers.length).toBeLessThanOrEqual(counts.needsReview);
      expect(mirror.simulator.state.arrivals.stats(60).userManagement.rateLimited).toBe(0);
    });
  },
);

/** Sends a part of the files, and kills the process that reads them. */
async function killReader(mirror: Mirror, sql: pg.Client, random: SeededRandom): Promise<void> {
  const api = await mirror.start({ ROLES: 'api' });
  const form = new FormData();
  for (const { name, type, content } of files)
    form.append(name.replace('.csv', ''), new Blob([content as string], { type }), name);
  const whole = new Response(form);
  const bytes = Buffer.from(await whole.arrayBuffer());
  const begun = (await imports(sql)).length;
  const headers = {
    authorization: `Bearer ${ADMIN_KEY}`,
    'content-type': whole.headers.get('content-type') ?? '',
    'content-length': bytes.length,
  };
  const upload = request(`${api.url}/v1/imports?kind=clients`, { method: 'POST', headers });
  upload.on('error', () => undefined); // cut, as it is meant to be
  upload.write(bytes.subarray(0, Math.max(1, Math.floor(random.fraction() * bytes.length))));
  await until('the upload is being read', async () => (await imports(sql)).length > begun);
  await delay(random.fraction() * 60);
  await api.kill('SIGKILL');
  upload.destroy();
  // A minute without a sign of life is not waited for.
  await sql.query(`UPDATE imports SET alive_at = alive_at - interval '2 minutes'`);
}

/** Kills a worker in the middle of the transaction that plans and applies: where it writes to this table. */
async function killPlanner(mirror: Mirror, sql: pg.Client, table: string): Promise<void> {
  await sql.query(`BEGIN; LOCK TABLE ${table} IN SHARE MODE`);
  const worker = await mirror.start({ ROLES: 'worker' });
  await until(`the planner comes to ${table}`, async () => {
    const { rowCount } = await sql.query('SELECT 1 FROM pg_locks WHERE NOT granted AND relation = $1::regclass', [
      table,
    ]);
    return rowCount;
  });
  await worker.kill('SIGKILL');
  await sql.query('ROLLBACK');
}

async function imports(sql: pg.Client): Promise<{ id: string; state: string; code: string | null; rows: number }[]> {
  const { rows } = await sql.query(
    `SELECT id, state, error_code AS code, (SELECT count(*)::int FROM import_rows r WHERE r.import_id = i.id) AS rows FROM imports i`,
  );
  return rows;
}

/** The uploads whose readers were killed have failed, and left nothing behind. */
async function brokenOff(sql: pg.Client, whole: string): Promise<void> {
  const others = async () => (await imports(sql)).filter(({ id }) => id !== whole);
  await until(
    'the uploads that broke off are given up',
    async () => (await others()).every(({ state }) => state !== 'staging'),
  );
  const left = (await others()).map(({ state, code, rows }) => ({ state, code, rows }));
  expect(left).toEqual(Array(READERS).fill({ state: 'failed', code: 'interrupted', rows: 0 }));
}

type Role = 'api' | 'worker';

/** An API process and three workers, of which one is killed now and then and replaced. */
class Processes {
  private readonly running: { role: Role; service: Service }[] = [];
  private readonly starting = new Set<Promise<unknown>>();

  constructor(
    private readonly mirror: Mirror,
    private readonly random: SeededRandom,
  ) {}

  /** The API, as soon as it is there. */
  async api(): Promise<Service> {
    const mine = () => this.running.find(({ role }) => role === 'api')?.service;
    if (!mine() && this.starting.size === 0) this.add('api');
    while (!mine()) await Promise.race(this.starting);
    return mine() as Service;
  }

  async fill(): Promise<void> {
    await Promise.all(this.starting);
    await this.api();
    while (this.running.length + this.starting.size < 4) this.add('worker');
    await Promise.all(this.starting);
  }

  /** Kills one soon after so many calls have arrived at the platform: mostly while one is under way. */
  async killOneAfter(calls: number): Promise<void> {
    await until(`${Math.ceil(calls)} calls have arrived`, () => this.mirror.arrivals() >= calls);
    await delay(this.random.fraction() * 60);
    if (this.running.length === 0) await Promise.race(this.starting);
    const [victim] = this.running.splice(Math.floor(this.random.fraction() * this.running.length), 1);
    if (!victim) return;
    await victim.service.kill('SIGKILL');
    this.add(victim.role);
  }

  private add(role: Role): void {
    const start = this.mirror.start({ ROLES: role }).then((service) => {
      this.running.push({ role, service });
      this.starting.delete(start);
    });
    this.starting.add(start);
  }
}

async function callsWithoutAnswer(databaseUrl: string): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query('SELECT count(*)::int AS cut FROM platform_calls WHERE answered_at IS NULL');
  await client.end();
  return rows[0].cut;
}

async function everybody(service: Service): Promise<PersonView[]> {
  const people: PersonView[] = [];
  for (const kind of ['providers', 'clients']) {
    let cursor = '';
    do {
      const { body } = await service.call<Page<PersonView>>('GET', `/v1/${kind}?limit=200${cursor}`);
      people.push(...body.items);
      cursor = body.nextCursor ? `&cursor=${encodeURIComponent(body.nextCursor)}` : '';
    } while (cursor);
  }
  return people;
}

function csv(header: string, rows: number, row: (n: number) => string): string {
  return [header, ...Array.from({ length: rows }, (_, n) => row(n))].join('\n');
}
