import { startTcpProxy } from '../harness/tcp-proxy.js';
import type { BenchRow } from './bench-row.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { startService } from './service-process.js';

/** Milliseconds in which whoever needs the database is told that it is away, instead of being left to hang. */
const LONGEST_MS = 5_000;
const REQUESTS = 20;

/** The slowest answers of the API, and of the health check, while PostgreSQL refuses every connection. */
export async function benchDatabaseAway(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url) => {
    const database = new URL(url);
    const proxy = await startTcpProxy(Number(database.port));
    database.port = String(proxy.port);
    const service = await startService({
      DATABASE_URL: database.toString(),
    });
    try {
      await proxy.cut();
      return [
        row('the database away, slowest answer to an unknown key', await slowest(`${service.url}/v1/capabilities`)),
        row('the database away, slowest answer to a health check', await slowest(`${service.url}/health/ready`)),
      ];
    } finally {
      await service.stop();
      await proxy.close();
    }
  });
}

const row = (name: string, value: number): BenchRow => ({
  name,
  value,
  unit: 'ms',
  target: `≤ ${LONGEST_MS}`,
  ok: value <= LONGEST_MS,
});

/** @returns milliseconds @throws {Error} when one is answered otherwise than with 503 */
async function slowest(url: string): Promise<number> {
  const headers = { authorization: `Bearer nb_${'A'.repeat(43)}` };
  const times = Array.from({ length: REQUESTS }, async () => {
    const begun = performance.now();
    const { status } = await fetch(url, { headers });
    if (status !== 503) throw new Error(`${url} was answered ${status} while the database was away.`);
    return performance.now() - begun;
  });
  return Math.max(...(await Promise.all(times)));
}
