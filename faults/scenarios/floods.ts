import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Service } from '../../harness/service.js';
import { WebhookSender } from '../../harness/webhook-sender.js';
import type { Scope } from '../../src/access/identity/scope.js';
import type { Scenario } from '../scenario.js';
import type { FloodPlan, FloodRequest } from '../workload/flood-sender.js';
import { WEBHOOK_SECRET, type World } from '../world.js';

const KIB = 1024;
const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const DAY_SECONDS = 86_400;

/** How long each flood lasts. That of strangers takes a minute, because it is recorded once a minute. */
const SECONDS = 20;
const MINUTE_SECONDS = 60;

/** Genuine deliveries, and requests with a valid key, under each flood. */
const PER_SECOND = 10;

const FORGED_PER_SECOND = 100;

/** Limits under each flood. */
const MAX_MEMORY_MIB = 512;
const MAX_BYTES_OF_STRANGERS_PER_DAY = GIB;

/** Where memory is free, V8 collects garbage late, up to 1 GiB under these floods (docs/operations/sizing.md). */
const HEAP = '--max-old-space-size=256';

const PEOPLE = 1_000;

const CONNECTIONS = 40;

/** As many as MAX_CONNECTIONS allows by default. The process takes some more, for the genuine requests. */
const SLOW_CONNECTIONS = 500;
const MAX_CONNECTIONS = SLOW_CONNECTIONS + 50;

/** All but the last byte of WEBHOOK_BODY_LIMIT by default, in about 20 seconds. */
const SLOW_BODY = { bytes: 256 * KIB - 1, part: 2 * KIB, everyMs: 150 };

/** 70,000 chunks a second. More would measure the CPU: Node takes 1 to 4 microseconds for each. */
const CHUNKING_CONNECTIONS = 5;

const LISTING_CONNECTIONS = 10;

const UNFINISHED_PDFS = 80;
const PDF_BYTES = 24 * MIB;

const JSON_BODY = { 'content-type': 'application/json' };
const FORM = { 'content-type': 'multipart/form-data; boundary=x' };

/** Tables that callers add to, except deliveries. The log counts, too. */
const STORED = `SELECT sum(pg_total_relation_size(oid))::float8 AS bytes FROM pg_class
  WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname !~ '^(webhook_|sessions|feed_)'`;

/** A flooded process must answer genuine requests within limits of time, memory and disk. */
export const floods: Scenario = {
  name: 'floods',
  says: 'floods of slow bodies, forged deliveries, strangers, large answers and unfinished PDFs, with genuine requests',
  minutes: 5,
  alone: true,
  wanted: { calls: 60_000, env: { MAX_CONNECTIONS: String(MAX_CONNECTIONS), NODE_OPTIONS: HEAP } },
  async run(world) {
    const service = await world.startOne({ PORT: '0' });
    await createPeople(world, service);
    const run = new Flooded(world, service, await keyFor(service, ['people:read']));
    await run.under('slow bodies', {
      connections: SLOW_CONNECTIONS,
      requests: [forged(SLOW_BODY.bytes + 1)],
      unfinished: SLOW_BODY,
    });
    const inChunks = { ...SLOW_BODY, inChunks: true };
    await run.under('slow bodies in chunks of a byte', {
      connections: CHUNKING_CONNECTIONS,
      requests: [forged()],
      unfinished: inChunks,
    });
    await run.under('forged deliveries', {
      connections: CONNECTIONS,
      requests: [{ ...forged(2), body: '{}' }],
      pauseMs: (1_000 * CONNECTIONS) / FORGED_PER_SECOND,
    });
    const refused = await run.under('strangers', { connections: CONNECTIONS, requests: STRANGERS }, MINUTE_SECONDS);
    world.oracle.atMost(
      'bytes stored for strangers, per day',
      refused * (DAY_SECONDS / MINUTE_SECONDS),
      MAX_BYTES_OF_STRANGERS_PER_DAY,
    );
    await run.under('descriptions', { connections: CONNECTIONS, requests: [get('/openapi.json')] });
    const list = { ...get('/v1/clients?limit=200'), headers: await keyFor(service, ['people:read']) };
    const providers = { ...list, path: '/v1/providers?limit=200' };
    await run.under('lists', { connections: LISTING_CONNECTIONS, requests: [list, providers] });
    await run.under('unfinished PDFs', {
      connections: UNFINISHED_PDFS,
      requests: [await unfinishedPdf(service)],
      unfinished: { bytes: PDF_BYTES, part: 64 * KIB, everyMs: 1 },
    });
  },
};

/** A process, its floods, and the measurements under each. */
class Flooded {
  private readonly seconds: number;
  private readonly port: number;

  constructor(
    private readonly world: World,
    private readonly service: Service,
    private readonly key: { authorization: string },
  ) {
    this.seconds = world.sized(SECONDS, 5);
    this.port = Number(new URL(service.url).port);
  }

  /** Floods the process, and checks its answers to genuine requests and its memory. @returns bytes that it stored */
  async under(name: string, plan: Omit<FloodPlan, 'port'>, seconds = this.seconds): Promise<number> {
    const { world, service } = this;
    const before = await this.stored();
    writeFileSync(`/proc/${service.pid}/clear_refs`, '5'); // resets VmHWM
    const worker = new Worker(path.resolve('dist/faults/workload/flood-sender.js'), {
      workerData: { ...plan, port: this.port } satisfies FloodPlan,
    });
    const ended = new Promise<Record<string, number>>((resolve) => worker.once('message', resolve));
    const [slowest, read] = await Promise.all([this.deliver(name, seconds), this.read(name, seconds)]);
    worker.postMessage('stop');
    const statuses = await ended;
    const memory = peakMemoryMib(service.pid);
    const bytes = (await this.stored()) - before;
    world.counts.requests += Object.values(statuses).reduce((sum, count) => sum + count, 0);
    world.setting.log(
      `${name}: ${JSON.stringify(statuses)}, slowest delivery ${slowest} ms, slowest read ${read} ms, ${memory} MiB, ${Math.round(bytes / 1024)} KiB stored`,
    );
    world.oracle.atMost(`MiB of memory under ${name}`, memory, MAX_MEMORY_MIB);
    return bytes;
  }

  /** Sends genuine deliveries for some seconds. @returns milliseconds of the slowest answer */
  private async deliver(name: string, seconds: number): Promise<number> {
    const { world } = this;
    const sender = new WebhookSender(() => WEBHOOK_SECRET, [this.port], world.random);
    const sending = [];
    for (let at = 0; at < seconds * PER_SECOND; at += 1) {
      const body = JSON.stringify({ eventType: 'SESSION_CREATED', sessionId: `${name}-${at}`, providerUserId: 'p-1' });
      sending.push(sender.deliver(body));
      await delay(1_000 / PER_SECOND);
    }
    const sent = await Promise.all(sending);
    sender.close();
    world.counts.deliveries += sent.length;
    // Within the platform's five seconds. `bench -- receiver` measures the speed.
    world.oracle.same(
      `deliveries acknowledged at the first attempt under ${name}`,
      count(sent, ({ tries }) => tries === 1),
      sent.length,
    );
    return Math.round(Math.max(...sent.map((each) => each.slowest)));
  }

  /** Reads with a valid key, from the address of the flood. @returns milliseconds of the slowest answer */
  private async read(name: string, seconds: number): Promise<number> {
    const reading: Promise<{ status: number; ms: number }>[] = [];
    for (let at = 0; at < seconds * PER_SECOND; at += 1) {
      reading.push(timed(() => fetch(`${this.service.url}/v1/capabilities`, { headers: this.key })));
      await delay(1_000 / PER_SECOND);
    }
    const answers = await Promise.all(reading);
    this.world.counts.requests += answers.length;
    this.world.oracle.same(
      `requests with a valid key that are answered under ${name}`,
      count(answers, ({ status }) => status === 200),
      answers.length,
    );
    return Math.round(Math.max(...answers.map(({ ms }) => ms)));
  }

  private async stored(): Promise<number> {
    const [row] = await this.world.rows<{ bytes: number }>(STORED);
    return (row?.bytes ?? 0) + Buffer.byteLength(this.service.output());
  }
}

const count = <T>(all: readonly T[], is: (one: T) => boolean): number => all.filter(is).length;
const get = (url: string): FloodRequest => ({ method: 'GET', path: url, headers: {} });

/** A delivery without a valid signature. @param length of its body in bytes; undefined if it comes in chunks */
const forged = (length?: number): FloodRequest => ({
  method: 'POST',
  path: '/webhooks/platform',
  headers: {
    ...JSON_BODY,
    'x-service-timestamp': String(Date.now()),
    'x-service-signature': 'f'.repeat(64),
    ...(length === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(length) }),
  },
});

/** Requests without a valid key, in each way. */
const STRANGERS: readonly FloodRequest[] = [
  { ...get('/v1/clients'), headers: { authorization: `Bearer nb_${'x'.repeat(43)}` } },
  { ...get('/v1/clients'), headers: { cookie: `__Host-notebridge_session=${'x'.repeat(43)}` } },
  { method: 'PUT', path: '/v1/clients/C-1', headers: JSON_BODY, body: '{}' },
  get('/v1/clients'),
  get('/nowhere'),
];

/** @returns status (0 if there is no answer) and milliseconds of a request */
async function timed(request: () => Promise<Response>): Promise<{ status: number; ms: number }> {
  const begun = performance.now();
  const status = await request().then(
    async (answer) => {
      await answer.arrayBuffer();
      return answer.status;
    },
    () => 0,
  );
  return { status, ms: performance.now() - begun };
}

/** The largest memory that a process had, in MiB (proc_pid_status(5)). */
function peakMemoryMib(pid: number): number {
  const [, kib = '0'] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1024);
}

/** The header of a new key. */
async function keyFor(service: Service, scopes: readonly Scope[]): Promise<{ authorization: string }> {
  const { body } = await service.call<{ key: string }>('POST', '/v1/api-keys', { body: { name: 'flood', scopes } });
  return { authorization: `Bearer ${body.key}` };
}

async function createPeople(world: World, service: Service): Promise<void> {
  const content = ['externalId,firstName,lastName,email', ...linesOf('P', PEOPLE)].join('\n');
  await service.startImport('kind=providers', [{ name: 'p.csv', type: 'text/csv', content }]);
  await world.reach('people are synced', async () => (await world.count("people WHERE state = 'synced'")) >= PEOPLE);
}

const linesOf = (name: string, many: number): string[] =>
  Array.from({ length: many }, (_, at) => `${name}-${at},A,B,${name}${at}@example.org`);

/** The start of a form with one PDF that never ends. */
async function unfinishedPdf(service: Service): Promise<FloodRequest> {
  const part = 'Content-Disposition: form-data; name="file"; filename="a.pdf"\r\nContent-Type: application/pdf';
  return {
    method: 'POST',
    path: '/v1/compliance/jobs',
    headers: { ...(await keyFor(service, ['compliance'])), ...FORM, 'content-length': String(PDF_BYTES + 10_000) },
    body: `--x\r\n${part}\r\n\r\n%PDF-1.7\n`,
  };
}
