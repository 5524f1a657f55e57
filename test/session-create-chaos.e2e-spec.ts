import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { Simulator } from '../simulator/app.js';
import { readFaultRule } from '../simulator/gate/fault-rule.js';
import { SeededRandom } from '../simulator/seeded-random.js';
import { describeOnBothBackends } from './support/backends.js';
import { ADMIN_KEY, type Mirror, useMirrors } from './support/service.js';
import { callSimulator } from './support/simulator-call.js';

/** Requests in one run, and what all chance comes from. */
const ROUNDS = Number(process.env.ROUNDS ?? 36);
const SEED = Number(process.env.SEED);

const CLIENTS_AT_ONCE = 6;
const ROUNDS_PER_KILL = 6;
const PROCESSES = 2;

/** Most answers are lost, in every way there is. */
const TROUBLE = [
  { kind: 'commit-then-cut', probability: 0.4 },
  { kind: 'commit-then-500', probability: 0.2 },
  { kind: 'bad-json', probability: 0.1 },
  { kind: 'commit-late', probability: 0.15, ms: 500 },
  { kind: 'slow', probability: 0.2, ms: 600 },
  { kind: 'rate-limit', probability: 0.1 },
  { kind: 'refuse', probability: 0.1 },
];

interface Kept {
  appointment: string;
  state: string;
  body: Buffer | null;
  session_id: string | null;
}

describeOnBothBackends(`${ROUNDS} requests whose answers are lost, of processes that are killed`, (backend) => {
  const newMirror = useMirrors();

  test('no request makes two sessions: each has one, or stands as unknown and has none', async () => {
    console.log(`seed ${SEED}, ${backend.name}`);
    const random = new SeededRandom(SEED);
    const platform = {
      webhookSecret: 'webhook-secret-of-the-tests',
      stepMs: 300,
      webhookRetryBaseMs: 50,
    };
    const mirror = await newMirror({ backend, platform });
    const crew = await Crew.start(mirror, random);
    await crew.mirrorProvider();
    const { state } = mirror.simulator;
    const { deliveries } = state;
    state.settings = { ...state.settings, webhookUrl: `${crew.urls[0]}/webhooks/platform` };
    state.faults.order(TROUBLE.map((rule) => readFaultRule({ operation: 'createSession', ...rule })));

    const wishes = Array.from({ length: ROUNDS }, (_, round) => `visit-${round}`);
    const left = [...wishes];
    let asked = 0;
    const ask = async () => {
      for (let wish = left.shift(); wish; wish = left.shift()) {
        await crew.ask(wish);
        asked += 1;
      }
    };
    const asking = Promise.all(Array.from({ length: CLIENTS_AT_ONCE }, ask));
    let kills = 0;
    for (let at = 2; at < ROUNDS; at += ROUNDS_PER_KILL) {
      await until(`${at} requests were answered`, () => asked >= at);
      await delay(random.fraction() * 400);
      await crew.killOne();
      kills += 1;
    }
    await asking;
    await crew.allUp();
    state.faults.clear();

    const sql = new pg.Client({ connectionString: mirror.database.url });
    await sql.connect();
    try {
      const count = (text: string) => sql.query<{ count: number }>(text).then(({ rows }) => rows[0]?.count ?? 0);
      await until(
        'no request is on its way',
        async () => (await count(`SELECT count(*)::int FROM session_requests WHERE state = 'Requested'`)) === 0,
      );
      // What the platform gave up while nobody listened comes after all: so no request may stand as unknown whose
      // session was made, for every event names the appointment and the provider.
      await until('every session ended', () => state.sessions.list().every(({ nextStep }) => !nextStep));
      await deliveries.settled();
      const again = await redeliver(mirror.simulator);
      expect(deliveries.list().filter(({ state: reached }) => reached !== 'delivered')).toEqual([]);
      await until(
        'no event is left',
        async () => (await count(`SELECT count(*)::int FROM webhook_deliveries WHERE due_at IS NOT NULL`)) === 0,
      );
      const { rows: kept } = await sql.query<Kept>(
        `SELECT r.correlation_id AS appointment, r.state, r.body, s.session_id
         FROM session_requests r JOIN sessions s ON s.id = r.session`,
      );
      const made = new Map<string, string[]>(wishes.map((wish) => [wish, []]));
      for (const { partnerAppointmentId, sessionId } of state.sessions.list()) {
        made.get(partnerAppointmentId ?? '')?.push(sessionId);
      }
      const twice = [...made].filter(([, sessions]) => sessions.length > 1);
      expect(twice).toEqual([]);
      expect(new Set(kept.map(({ appointment }) => appointment)).size).toBe(kept.length);
      for (const { appointment, state: reached, session_id: sessionId, body } of kept) {
        const sessions = made.get(appointment);
        if (reached === 'Settled') expect([sessions, body]).toEqual([[sessionId], null]);
        else expect([reached, sessionId, body === null]).toEqual(['Unknown', null, false]);
      }
      const neverKept = wishes.filter((wish) => !kept.some(({ appointment }) => appointment === wish));
      expect(neverKept.flatMap((wish) => made.get(wish) ?? [])).toEqual([]);
      const doubled = await count(
        `SELECT count(*)::int FROM (SELECT 1 FROM sessions GROUP BY session_id HAVING count(session_id) > 1) twice`,
      );
      expect(doubled).toBe(0);
      const settled = kept.filter(({ state: reached }) => reached === 'Settled').length;
      const unknown = kept.filter(({ state: reached }) => reached === 'Unknown');
      expect(unknown.filter(({ appointment }) => made.get(appointment)?.length)).toEqual([]);
      console.log(
        `${backend.name}: ${wishes.length} requests, ${kills} kills; ${settled} settled, ${unknown.length} unknown, ` +
          `${neverKept.length} never kept; ${mirror.arrivals('createSession')} attempts, ${again} events sent once more`,
      );
      expect(settled).toBeGreaterThan(0);
    } finally {
      await sql.end();
    }
  });
});

/** Processes on fixed ports, of which one is killed now and then and started again. */
class Crew {
  private constructor(
    private readonly mirror: Mirror,
    private readonly random: SeededRandom,
    private readonly ports: number[],
    private readonly running: Promise<Service>[],
  ) {}

  static async start(mirror: Mirror, random: SeededRandom): Promise<Crew> {
    const ports = await Promise.all(Array.from({ length: PROCESSES }, freePort));
    const running = ports.map((port) => mirror.start({ PORT: String(port) }));
    await Promise.all(running);
    return new Crew(mirror, random, ports, running);
  }

  get urls(): string[] {
    return this.ports.map((port) => `http://127.0.0.1:${port}`);
  }

  async mirrorProvider(): Promise<void> {
    const body = { email: 'pia@example.org', firstName: 'Pia', lastName: 'Ruiz' };
    const answer = await (await this.running[0])?.call('PUT', '/v1/providers/p-1', { body, wait: 60 });
    expect(answer?.status).toBe(200);
  }

  /** Asks one process, and another one with the same key when that one was killed; some callers give up earlier. */
  async ask(partnerAppointmentId: string): Promise<void> {
    const input = { text: { text: `Notes of ${partnerAppointmentId}.` } };
    const templates = ['11111111-1111-4111-8111-111111111111'];
    const body = JSON.stringify({ provider: 'p-1', noteTemplateIds: templates, input, partnerAppointmentId });
    const headers = {
      authorization: `Bearer ${ADMIN_KEY}`,
      'content-type': 'application/json',
      'idempotency-key': partnerAppointmentId,
      prefer: `wait=${Math.floor(this.random.fraction() * 3)}`,
    };
    const patience = this.random.chance(0.2) ? 1 : 60;
    for (let tries = 0; tries < patience; tries += 1) {
      const url = this.urls[Math.floor(this.random.fraction() * PROCESSES)];
      const status = await fetch(`${url}/v1/sessions`, { method: 'POST', headers, body }).then(
        (answer) => answer.text().then(() => answer.status),
        () => undefined,
      );
      if (status !== undefined && status < 500) return;
      await delay(200);
    }
  }

  async killOne(): Promise<void> {
    const at = Math.floor(this.random.fraction() * PROCESSES);
    await (await this.running[at])?.kill('SIGKILL');
    this.running[at] = this.mirror.start({ PORT: String(this.ports[at]) });
    this.running[at]?.catch(() => undefined); // seen by whoever awaits it next
  }

  async allUp(): Promise<void> {
    await Promise.all(this.running);
  }
}

/** Has what the platform gave up sent once more. @returns how many events that were */
async function redeliver(simulator: Simulator): Promise<number> {
  const answer = await callSimulator(simulator, 'POST', '/_simulator/deliveries/redeliver');
  await simulator.state.deliveries.settled();
  return answer.json<{ redelivered: number }>().redelivered;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address ? address.port : 0;
}
