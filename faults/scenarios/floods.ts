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

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const DAY_SECONDS = 86_400;

/** How long each flood lasts. That of rejected requests takes a minute, because it is recorded once a minute. */
const SECONDS = 20;
const MINUTE_SECONDS = 60;

/** Genuine deliveries under each flood. */
const DELIVERIES_PER_SECOND = 10;

/** Limits under each flood. */
const MAX_MEMORY_MIB = 512;
const MAX_REFUSED_BYTES_PER_DAY = GIB;
const MAX_AMPLIFICATION = 10;

const DAILY_MIB = 16;
const PEOPLE = 1_000;

const CONNECTIONS = 40;
const UNFINISHED_PDFS = 80;
const PDF_BYTES = 24 * MIB;

const JSON_BODY = { 'content-type': 'application/json' };
const FORM = { 'content-type': 'multipart/form-data; boundary=x' };

/** Tables that callers add to, except deliveries. The log counts, too. */
const STORED = `SELECT sum(pg_total_relation_size(oid))::float8 AS bytes FROM pg_class
  WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname !~ '^(webhook_|sessions|feed_)'`;

/** A flooded process must answer genuine deliveries before the platform repeats them, within limits of memory and disk. */
export const floods: Scenario = {
  name: 'floods',
  says: 'floods of large descriptions and lists, unfinished PDFs, rejected and accepted requests, with genuine deliveries',
  minutes: 4,
  alone: true,
  wanted: { calls: 60_000, env: { KEY_DAILY_BYTES: `${DAILY_MIB} MiB` } },
  async run(world) {
    const service = await world.startOne({ PORT: '0' });
    await createPeople(world, service);
    const run = new Flooded(world, service);
    const list = { ...get('/v1/clients?limit=200'), headers: await keyFor(service, ['people:read']) };
    const providers = { ...list, path: '/v1/providers?limit=200' };
    await run.under('descriptions', { connections: CONNECTIONS, requests: [get('/openapi.json')] });
    await run.under('lists', { connections: CONNECTIONS, requests: [list, providers] });
    await run.under('unfinished PDFs', {
      connections: UNFINISHED_PDFS,
      requests: [await unfinishedPdf(service)],
      stallsAfter: PDF_BYTES,
    });
    const refusing = { connections: CONNECTIONS, requests: await refusals(service) };
    const refused = await run.under('refused requests', refusing, MINUTE_SECONDS);
    world.oracle.atMost(
      'bytes stored for rejected requests, per day',
      refused * (DAY_SECONDS / MINUTE_SECONDS),
      MAX_REFUSED_BYTES_PER_DAY,
    );
    const accepted = await run.under('accepted requests', { connections: 4, requests: await storing(service) });
    world.oracle.atMost('bytes stored for accepted requests', accepted, MAX_AMPLIFICATION * DAILY_MIB * MIB);
  },
};

/** A process, its floods, and the measurements under each. */
class Flooded {
  private readonly seconds: number;
  private readonly port: number;

  constructor(
    private readonly world: World,
    private readonly service: Service,
  ) {
    this.seconds = world.sized(SECONDS, 5);
    this.port = Number(new URL(service.url).port);
  }

  /** Floods the process, and checks its answers to genuine deliveries and its memory. @returns bytes that it stored */
  async under(name: string, plan: Omit<FloodPlan, 'port'>, seconds = this.seconds): Promise<number> {
    const { world, service } = this;
    const before = await this.stored();
    writeFileSync(`/proc/${service.pid}/clear_refs`, '5'); // resets VmHWM
    const worker = new Worker(path.resolve('dist/faults/workload/flood-sender.js'), {
      workerData: { ...plan, port: this.port } satisfies FloodPlan,
    });
    const ended = new Promise<Record<string, number>>((resolve) => worker.once('message', resolve));
    const slowest = await this.deliver(name, seconds);
    worker.postMessage('stop');
    const statuses = await ended;
    const memory = peakMemoryMib(service.pid);
    const bytes = (await this.stored()) - before;
    world.counts.requests += Object.values(statuses).reduce((sum, count) => sum + count, 0);
    world.setting.log(
      `${name}: ${JSON.stringify(statuses)}, slowest delivery ${slowest} ms, ${memory} MiB, ${Math.round(bytes / 1024)} KiB stored`,
    );
    world.oracle.atMost(`MiB of memory under ${name}`, memory, MAX_MEMORY_MIB);
    return bytes;
  }

  /** Sends genuine deliveries for some seconds. @returns milliseconds of the slowest answer */
  private async deliver(name: string, seconds: number): Promise<number> {
    const { world } = this;
    const sender = new WebhookSender(() => WEBHOOK_SECRET, [this.port], world.random);
    const sending = [];
    for (let at = 0; at < seconds * DELIVERIES_PER_SECOND; at += 1) {
      const body = JSON.stringify({ eventType: 'SESSION_CREATED', sessionId: `${name}-${at}`, providerUserId: 'p-1' });
      sending.push(sender.deliver(body));
      await delay(1_000 / DELIVERIES_PER_SECOND);
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

  private async stored(): Promise<number> {
    const [row] = await this.world.rows<{ bytes: number }>(STORED);
    return (row?.bytes ?? 0) + Buffer.byteLength(this.service.output());
  }
}

const count = <T>(all: readonly T[], is: (one: T) => boolean): number => all.filter(is).length;
const get = (url: string): FloodRequest => ({ method: 'GET', path: url, headers: {} });

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

/** Requests that are rejected, in each way. */
async function refusals(service: Service): Promise<FloodRequest[]> {
  const key = await keyFor(service, ['people:read', 'people:write']);
  const wrong = { authorization: `Bearer nb_${'x'.repeat(43)}` };
  const put = { method: 'PUT', path: '/v1/clients/C-1', headers: { ...key, ...JSON_BODY } };
  return [
    { ...get('/v1/imports'), headers: key },
    { ...get('/v1/clients/nobody'), headers: key },
    { ...get('/v1/clients?limit=none'), headers: key },
    { ...put, body: '{"surname":1}' },
    { ...put, body: 'no JSON' },
    { ...put, headers: key, body: 'text' },
    { ...get('/v1/clients'), headers: wrong },
    get('/v1/clients'),
    get('/nowhere'),
  ];
}

/** Small requests that store much data, until the key has used its daily limit of bytes. */
async function storing(service: Service): Promise<FloodRequest[]> {
  const key = await keyFor(service, ['imports', 'people:read', 'people:write']);
  const body = ['externalId,firstName,lastName', ...linesOf('C', 2_000)].join('\n');
  const upload = {
    method: 'POST',
    path: '/v1/imports?kind=clients&dryRun=true',
    headers: { ...key, 'content-type': 'text/csv' },
  };
  const person = JSON.stringify({ firstName: 'A', lastName: 'B', email: 'flood@example.org' });
  return [
    { ...upload, body },
    { method: 'PUT', path: '/v1/providers/P-flood', headers: { ...key, ...JSON_BODY }, body: person },
    { ...get('/v1/providers?limit=50'), headers: key },
  ];
}
