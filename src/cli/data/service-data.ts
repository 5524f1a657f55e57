import type { Client } from 'pg';
import { withConnectHint } from '../../database/connect/connect-fault.js';
import { withClient } from '../../database/connect/session.js';
import type { PrismaService } from '../../database/prisma.service.js';
import { withPrisma } from '../../database/with-prisma.js';
import type { ServiceKeys } from '../../vault/key-uses.js';
import { parseAllKeys } from '../../vault/keys.js';
import { serviceSettings } from '../api/service-settings.js';

/**
 * Runs the work of a command on the service's database, with its keys, whether the service runs or not.
 *
 * @param role whose connection the work gets; without DATABASE_OWNER_URL, the role of DATABASE_URL owns the tables
 * @throws {Error} one sentence, if the database cannot be reached
 */
export async function withServiceData<T>(
  work: (client: Client, keys: ServiceKeys, prisma: PrismaService) => Promise<T>,
  role: 'service' | 'owner' = 'service',
): Promise<T> {
  const { env, demo } = serviceSettings();
  const { DATABASE_URL: url, DATABASE_OWNER_URL: ownerUrl } = env;
  const { host, pathname } = new URL(url);
  const ofDemo = demo ? " (this clone's demo, because this environment has no settings of a service)" : '';
  console.error(`Database: ${host}${pathname}${ofDemo}`);
  const keys = parseAllKeys(env);
  const on = (url: string) => withClient(url, (client) => withPrisma(url, (prisma) => work(client, keys, prisma)));
  if (role === 'owner' && ownerUrl !== undefined) return withConnectHint('DATABASE_OWNER_URL', () => on(ownerUrl));
  return withConnectHint(demo ? 'that npm run demo or npm run dev still runs' : 'DATABASE_URL', () => on(url));
}
