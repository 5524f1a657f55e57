import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { SeededRandom } from '../simulator/seeded-random.js';
import type { Page } from '../src/http/page.js';
import type { PersonView } from '../src/people/person-view.js';
import { describeOnBothBackends } from './support/backends.js';
import { type Mirror, type Service, sumOfOutcomes, useMirrors } from './support/service.js';
import { until } from './support/until.js';

/** Kills in one run, and what all chance comes from. */
const KILLS = Number(process.env.ROUNDS ?? 20);
const SEED = Number(process.env.SEED ?? 20_261_121);

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

describeOnBothBackends(
  `an import of ${PROVIDERS + CLIENTS} people whose workers are killed ${KILLS} times`,
  (backend) => {
    const newMirror = useMirrors();

    test('loses nobody, makes nobody twice, and its counts are the truth', async () => {
      console.log(`seed ${SEED}, ${backend.name}`);
      const random = new SeededRandom(SEED);
      const mirror = await newMirror({ backend, calls: 3_600, platform: { latencyMs: [0, 60] } });
      const { users } = mirror.simulator.state;
      for (let n = 0; n < KNOWN; n++) {
        const names = { firstName: 'Pia', lastName: `N${n}` };
        users.add({ role: 'HealthcareProvider', email: `p-${n}@example.org`, ...names, providerUserIds: [] });
      }
      const workers = new Workers(mirror, random);
      const [api] = await Promise.all([mirror.start({ ROLES: 'api' }), workers.fill()]);
      const { id } = await api.startImport('kind=clients', [
        { name: 'providers.csv', type: 'text/csv', content: providersCsv },
        { name: 'clients.csv', type: 'text/csv', content: clientsCsv },
      ]);
      for (let kill = 0; kill < KILLS; kill++) await workers.killOneAfter(((kill + random.fraction()) * CALLS) / KILLS);
      await workers.fill();
      const ended = await api.importEnded(id, 90_000);
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
      expect(counts.needsReview).toBeLessThanOrEqual(KILLS);
      expect(users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });

      const people = await everybody(api);
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
    }, 180_000);
  },
);

/** Three workers, of which one is killed now and then and replaced. */
class Workers {
  private readonly running: Service[] = [];
  private readonly starting = new Set<Promise<unknown>>();

  constructor(
    private readonly mirror: Mirror,
    private readonly random: SeededRandom,
  ) {}

  async fill(): Promise<void> {
    while (this.running.length + this.starting.size < 3) this.add();
    await Promise.all(this.starting);
  }

  /** Kills one soon after so many calls have arrived at the platform: mostly while one is under way. */
  async killOneAfter(calls: number): Promise<void> {
    await until(`${Math.ceil(calls)} calls have arrived`, () => this.mirror.arrivals() >= calls, 40_000);
    await delay(this.random.fraction() * 60);
    if (this.running.length === 0) await Promise.race(this.starting);
    const [victim] = this.running.splice(Math.floor(this.random.fraction() * this.running.length), 1);
    await victim?.kill('SIGKILL');
    this.add();
  }

  private add(): void {
    const start = this.mirror.start({ ROLES: 'worker' }).then((worker) => {
      this.running.push(worker);
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
