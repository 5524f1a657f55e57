import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { until } from '../harness/until.js';
import { buildSimulator, DEFAULT_API_KEY, type Simulator } from '../simulator/app.js';
import { createSession } from '../simulator/sessions/session-routes.js';
import { takeStep } from '../simulator/sessions/session-run.js';
import type { BenchRow } from './bench-row.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { type ServiceProcess, startService } from './service-process.js';

/** Within which work that was leased to a process that is gone goes on in the next one. */
const MOST_SECONDS = 15;
const LOOK_MS = 20;
const FOREVER_MS = 3_600_000;
const IMPORTED = 20_000;
const DELIVERIES = 300;

const TEMPLATE = '11111111-1111-4111-8111-111111111111';
const [ADMIN_KEY, SECRET] = [randomBytes(24).toString('hex'), randomBytes(24).toString('hex')];

/** One kind of work that a process can be killed in the middle of. */
interface Work {
  name: string;
  /** Resolves when a process is in the middle of it. */
  begin(): Promise<unknown>;
  isDone(): Promise<boolean>;
}

/** How long work stands still when its process is killed and another is started at once, from the kill to its end. */
export async function benchRecovery(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url) => {
    const bench = new Recovery(
      url,
      await buildSimulator({ settings: { stepMs: 0, processingEvents: false, webhookSecret: SECRET } }),
    );
    try {
      return await bench.measure();
    } finally {
      await bench.close();
    }
  });
}

class Recovery {
  private readonly pool: pg.Pool;
  private service: ServiceProcess | undefined;

  constructor(
    private readonly databaseUrl: string,
    private readonly simulator: Simulator,
  ) {
    this.pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  }

  async close(): Promise<void> {
    this.service?.child.kill('SIGKILL');
    await this.simulator.close();
    await this.pool.end();
  }

  async measure(): Promise<BenchRow[]> {
    const kinds = this.kinds(); // the platform tells of their sessions when nobody listens yet
    await this.start();
    await this.put('providers/p-1', {});
    await until('the provider is mirrored', () => this.isMirrored('p-1'));
    const rows = [];
    for (const work of kinds) rows.push(await this.measureOne(work));
    return rows;
  }

  private kinds(): Work[] {
    const { state } = this.simulator;
    const session = this.newSession();
    const processingId = state.sessions.find(this.newSession())?.processingId ?? '';
    const jobId = randomUUID();
    const appointment = 'visit-1';
    return [
      {
        name: 'the fetch of a session',
        begin: () => this.inTheMiddleOf('getSession', () => this.runToEnd(session)),
        isDone: () => this.has(`sessions WHERE session_id = $1 AND state = 'Done' AND notes_revision > 0`, session),
      },
      {
        name: 'the look-up of a processing session',
        begin: () =>
          this.inTheMiddleOf('getProcessingSession', () =>
            state.deliveries.send({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId } }),
          ),
        isDone: () => this.has('processing_sessions WHERE processing_id = $1 AND session IS NOT NULL', processingId),
      },
      {
        name: "a person's look-up",
        begin: () => this.inTheMiddleOf('checkUser', () => this.put('clients/c-1', { providers: ['p-1'] })),
        isDone: () => this.isMirrored('c-1'),
      },
      {
        name: "a client's list of providers",
        begin: async () => {
          await this.put('providers/p-2', {});
          await until('the second provider is mirrored', () => this.isMirrored('p-2'));
          await this.inTheMiddleOf('setClientProviders', () => this.put('clients/c-1', { providers: ['p-1', 'p-2'] }));
        },
        isDone: () => this.isMirrored('c-1'),
      },
      {
        name: 'the result of a compliance job',
        begin: () =>
          this.inTheMiddleOf('getComplianceJob', () => {
            state.complianceJobs.set(jobId, { jobId, files: [], criteria: [], status: 'completed', willFail: false });
            state.deliveries.send({ eventType: 'COMPLIANCE_JOB_COMPLETED', payload: { jobId } });
          }),
        isDone: () => this.has('compliance_jobs WHERE job_id = $1 AND result IS NOT NULL', jobId),
      },
      {
        name: 'a request for a session, until its session is known by its event',
        begin: () => this.inTheMiddleOf('createSession', () => this.request(appointment)),
        isDone: () => this.has('sessions WHERE partner_appointment_id = $1 AND session_id IS NOT NULL', appointment),
      },
      {
        name: `${DELIVERIES} deliveries`,
        begin: async () => {
          for (let n = 0; n < DELIVERIES; n++) {
            const sessionId = randomUUID();
            state.deliveries.send({
              eventType: 'SESSION_CREATED',
              sessionId,
              providerUserId: 'p',
              aiNotesEnabled: null,
            });
          }
          await state.deliveries.settled();
        },
        isDone: async () =>
          !(await this.has('webhook_deliveries WHERE due_at IS NOT NULL AND $1::text IS NOT NULL', '')),
      },
      {
        name: `an import of ${IMPORTED.toLocaleString('en')}, from its last byte`,
        begin: () => this.import(),
        isDone: () => this.has(`imports WHERE state = 'running' AND $1::text IS NOT NULL`, ''),
      },
    ];
  }

  private async measureOne({ name, begin, isDone }: Work): Promise<BenchRow> {
    const { state } = this.simulator;
    await begin();
    const killedAt = performance.now();
    const child = this.service?.child;
    const ended = child && once(child, 'exit');
    child?.kill('SIGKILL');
    await ended;
    state.faults.clear();
    state.timers.cancelAll();
    await this.start();
    state.deliveries.redeliver('failed');
    while (!(await isDone())) await delay(LOOK_MS);
    const value = (performance.now() - killedAt) / 1_000;
    return {
      name: `killed in the middle of ${name}`,
      value,
      unit: 's',
      target: `≤ ${MOST_SECONDS}`,
      ok: value <= MOST_SECONDS,
    };
  }

  private async start(): Promise<void> {
    this.service = await startService({
      PLATFORM_BASE_URL: this.simulator.url,
      PLATFORM_API_KEY: DEFAULT_API_KEY,
      PLATFORM_CONTRACT: 'simulator/contract.json',
      PLATFORM_WEBHOOK_SECRET: SECRET,
      ADMIN_API_KEY: ADMIN_KEY,
      DATABASE_URL: this.databaseUrl,
    });
    this.simulator.state.settings.webhookUrl = `${this.service.url}/webhooks/platform`;
  }

  /** Has the platform hold back its answer to an operation, and waits until it is asked for one. */
  private async inTheMiddleOf(operation: string, begin: () => unknown): Promise<void> {
    const { faults, arrivals } = this.simulator.state;
    const asked = () => arrivals.list().filter((arrival) => arrival.operation === operation).length;
    const before = asked();
    faults.order([
      {
        operation,
        kind: 'slow',
        probability: 1,
        count: null,
        match: {},
        ms: FOREVER_MS,
        status: 500,
        retryAfter: 'seconds',
        retryAfterSeconds: 1,
      },
    ]);
    await begin();
    await until(`the platform is asked for ${operation}`, () => asked() > before);
  }

  /** A session that the platform's application has made. */
  private newSession(): string {
    const session = createSession(this.simulator.state, {
      providerUserId: 'p',
      clientUserIds: [],
      noteTemplateIds: [TEMPLATE],
      input: { kind: 'text', text: 'They spoke of the week.' },
      date: '2026-03-01T09:00:00.000Z',
    });
    return session.sessionId;
  }

  private runToEnd(sessionId: string): void {
    const session = this.simulator.state.sessions.find(sessionId);
    while (session?.nextStep) takeStep(this.simulator.state, session);
  }

  private async has(what: string, value: string): Promise<boolean> {
    const { rowCount } = await this.pool.query(`SELECT 1 FROM ${what} LIMIT 1`, [value]);
    return rowCount === 1;
  }

  private isMirrored(externalId: string): Promise<boolean> {
    return this.has(`people WHERE external_id = $1 AND state = 'synced'`, externalId);
  }

  private put(path: string, more: object): Promise<unknown> {
    const email = `${path.replace('/', '-')}@example.org`;
    return this.send('PUT', path, { email, firstName: 'Pia', lastName: 'Ruiz', ...more });
  }

  private request(partnerAppointmentId: string): Promise<unknown> {
    const input = { text: { text: 'They spoke of the week.' } };
    return this.send('POST', 'sessions', { provider: 'p-1', noteTemplateIds: [TEMPLATE], input, partnerAppointmentId });
  }

  private async import(): Promise<void> {
    const lines = Array.from({ length: IMPORTED }, (_, n) => `R-${n},r-${n}@example.org,First,Last`);
    const answer = await fetch(`${this.service?.url}/v1/imports?kind=providers`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'text/csv', prefer: 'wait=0' },
      body: ['externalId,email,firstName,lastName', ...lines].join('\n'),
    });
    if (answer.status !== 202) throw new Error(`The import was answered ${answer.status}.`);
  }

  private async send(method: string, path: string, body: object): Promise<void> {
    const answer = await fetch(`${this.service?.url}/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json', prefer: 'wait=0' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}: ${await answer.text()}`);
  }
}
