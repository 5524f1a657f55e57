import { randomBytes } from 'node:crypto';
import type { BenchRow } from './bench-row.js';
import { cpuSeconds } from './cpu-seconds.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { startService } from './service-process.js';

const ADMIN_KEY = randomBytes(24).toString('hex');

const PEOPLE = 200;
const PAGES = 300;
const MAX_CPU_MS = 5;

/** The service's CPU for a page of people with decrypted names and emails. */
export async function benchPeoplePage(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url) => {
    const service = await startService({ ADMIN_API_KEY: ADMIN_KEY, DATABASE_URL: url, ROLES: 'api' });
    const call = async (path: string, init: RequestInit = {}) => {
      const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' };
      const answer = await fetch(service.url + path, { headers, ...init });
      if (!answer.ok) throw new Error(`${path} returned ${answer.status}.`);
      return answer.text();
    };
    const readPages = async () => {
      for (let page = 0; page < PAGES; page += 1) await call(`/v1/providers?limit=${PEOPLE}`);
    };
    try {
      for (let person = 0; person < PEOPLE; person += 1) {
        const body = { email: `roe${person}@example.org`, firstName: 'Jane', lastName: 'Roe' };
        await call(`/v1/providers/P-${person}`, { method: 'PUT', body: JSON.stringify(body) });
      }
      await readPages(); // until all code is compiled
      const before = await cpuSeconds(service.child.pid as number);
      await readPages();
      const value = ((await cpuSeconds(service.child.pid as number)) - before) * (1_000 / PAGES);
      const name = `a page of ${PEOPLE} people: CPU of the service`;
      return [{ name, value, unit: 'ms', target: `≤ ${MAX_CPU_MS}`, ok: value <= MAX_CPU_MS }];
    } finally {
      await service.stop();
    }
  });
}
