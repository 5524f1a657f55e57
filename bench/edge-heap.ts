import { randomBytes } from 'node:crypto';
import { Agent, get } from 'node:http';
import type { BenchRow } from './bench-row.js';
import { startChild } from './child-program.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { IDLE_SETTINGS } from './service-process.js';

/** What is compiled or pooled once grows in these. */
const WARM_UP = 20_000;
const REQUESTS = 200_000;
const CONNECTIONS = 16;
/** MB (10⁶ bytes): a word for each request would be 1.6. */
const MOST_MB = 1.5;

const ADMIN_KEY = randomBytes(24).toString('hex');

/** What the heap of the service grows by over many requests that might wait, and so listen for who hangs up. */
export async function benchEdgeHeap(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url) => {
    const service = await startChild('bench/edge-heap-service.js', {
      ...IDLE_SETTINGS,
      ADMIN_API_KEY: ADMIN_KEY,
      DATABASE_URL: url,
      ROLES: 'api',
    });
    try {
      const { url: base } = service.ready as { url: string };
      const heap = async () => ((await service.ask({})) as { heap: number }).heap / 1e6;
      await ask(base, WARM_UP);
      const before = await heap();
      await ask(base, REQUESTS);
      const grown = (await heap()) - before;
      const name = `edge, growth of the heap after ${REQUESTS.toLocaleString('en')} requests`;
      return [{ name, value: grown, unit: 'MB', target: `≤ ${MOST_MB}`, ok: grown <= MOST_MB }];
    } finally {
      await service.stop();
    }
  });
}

async function ask(base: string, requests: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let left = requests;
  const worker = async () => {
    while (left-- > 0) await answerOf(`${base}/v1/events?limit=1`, agent);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  agent.destroy();
}

function answerOf(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = get(url, { agent, headers: { authorization: `Bearer ${ADMIN_KEY}` } }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`${url} was answered ${answer.statusCode}.`));
      answer.resume().once('end', resolve);
    });
    asked.once('error', reject);
  });
}
