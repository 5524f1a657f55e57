import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { buildSimulator, DEFAULT_API_KEY, type Simulator } from '../simulator/app.js';
import type { RangeMs } from '../simulator/settings.js';
import type { ImportResponse } from '../src/imports/report/import-view.js';
import { COUNT_EVERY_MS } from '../src/imports/run/import-runner.service.js';
import { type BenchRow, median } from './bench-row.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { type ServiceProcess, startService } from './service-process.js';

const PROVIDERS = 10;
const CLIENTS = 140;
/** A quarter of the providers and half of the clients are on the platform already: in the files they stand first. */
const [PROVIDERS_THERE, CLIENTS_THERE] = [PROVIDERS / 4, CLIENTS / 2];
/** The share of the run after which estimates are judged. */
const JUDGED_FROM = 0.1;
const MOST_OFF = 0.1;
const LOOK_MS = 100;
const LATENCY_MS: RangeMs = [20, 100];
const KEY = randomBytes(24).toString('hex');

/** What an import said of its end, and what was true, in seconds. */
interface Estimate {
  eta: number;
  left: number;
}

/**
 * How far the time that an import says it still takes is from the truth, in an import of more than a window's calls
 * against the simulator, at the platform's own limit. When the last answer comes, is counted and is looked at, is luck:
 * only what an estimate is off beyond that counts.
 */
export async function benchEta(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url) => {
    const simulator = await buildSimulator({ settings: { latencyMs: LATENCY_MS } });
    const service = await startService({
      PLATFORM_BASE_URL: simulator.url,
      PLATFORM_API_KEY: DEFAULT_API_KEY,
      PLATFORM_CONTRACT: 'simulator/contract.json',
      ADMIN_API_KEY: KEY,
      DATABASE_URL: url,
    });
    try {
      return rowsOf(await estimates(service, simulator));
    } finally {
      await service.stop();
      await simulator.close();
    }
  });
}

function rowsOf(all: Estimate[]): BenchRow[] {
  const luck = (COUNT_EVERY_MS + LOOK_MS + LATENCY_MS[1]) / 1_000;
  const off = all.map(({ eta, left }) => Math.max(0, Math.abs(eta - left) - luck) / left);
  const worst = Math.max(...off);
  return [
    {
      name: 'the time left, as an import tells it from a tenth of its run on: furthest from the truth',
      value: worst * 100,
      unit: '%',
      target: `≤ ${MOST_OFF * 100}`,
      ok: worst <= MOST_OFF,
    },
    { name: `… in the middle of ${all.length} estimates`, value: median(off) * 100, unit: '%' },
  ];
}

async function estimates({ url }: ServiceProcess, { state }: Simulator): Promise<Estimate[]> {
  const there = [...idsOf('p', PROVIDERS_THERE), ...idsOf('c', CLIENTS_THERE)];
  for (const id of there) {
    const role = id.startsWith('p') ? 'HealthcareProvider' : 'Client';
    state.users.add({ role, email: emailOf(id), firstName: 'A', lastName: 'B', providerUserIds: [] });
  }
  const id = await begin(url);
  const looks: { at: number; view: ImportResponse }[] = [];
  for (let ended = false; !ended; await delay(LOOK_MS)) {
    const headers = { authorization: `Bearer ${KEY}` };
    const view = (await (await fetch(`${url}/v1/imports/${id}`, { headers })).json()) as ImportResponse;
    if (view.state === 'failed') throw new Error('The import failed.');
    looks.push({ at: performance.now(), view });
    ended = view.state === 'completed';
  }
  const endedAt = looks.at(-1)?.at ?? 0;
  const running = looks.filter(({ view }) => view.state === 'running');
  const begunAt = running[0]?.at ?? 0;
  return running
    .filter(({ at }) => at >= begunAt + (endedAt - begunAt) * JUDGED_FROM)
    .map(({ at, view }) => ({ eta: view.etaSeconds ?? Number.POSITIVE_INFINITY, left: (endedAt - at) / 1_000 }));
}

/** Clients have two providers each, and all but one in ten an email: who is there takes two calls, who is not three. */
async function begin(url: string): Promise<string> {
  const providers = idsOf('p', PROVIDERS);
  const clients = idsOf('c', CLIENTS).map((id, at) => {
    const two = [providers[at % PROVIDERS], providers[(at + 1) % PROVIDERS]];
    return `${id},${at % 10 === 9 ? '' : emailOf(id)},Cleo,${id},${two.join('|')}`;
  });
  const form = new FormData();
  const add = (name: string, lines: string[]) =>
    form.append(name, new Blob([lines.join('\n')], { type: 'text/csv' }), `${name}.csv`);
  add('providers', ['externalId,email,firstName,lastName', ...providers.map((id) => `${id},${emailOf(id)},Pia,${id}`)]);
  add('clients', ['externalId,email,firstName,lastName,providers', ...clients]);
  const response = await fetch(`${url}/v1/imports?kind=clients`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}` },
    body: form,
  });
  if (response.status !== 202) throw new Error(`The import was answered ${response.status}.`);
  return ((await response.json()) as ImportResponse).id;
}

const idsOf = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}-${at + 1}`);

const emailOf = (id: string) => `${id}@example.org`;
