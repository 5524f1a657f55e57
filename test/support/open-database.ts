import { connectionShares } from '../../src/database/connect/connection-shares.js';
import { Database } from '../../src/database/database.js';
import type { TestDatabase } from './databases.js';

/** The connection shares of a process with the default settings. */
export const SHARES = connectionShares({ DATABASE_CONNECTIONS: 18, ROLES: ['api', 'worker'] });

/** The product's access to a database, for tests of code that uses it. It waits for a connection without a timeout. */
export function openDatabase({ url }: Pick<TestDatabase, 'url'>): Database {
  const database = new Database(url, SHARES);
  for (const pool of [database.pool, database.bulkPool]) pool.options.connectionTimeoutMillis = 0;
  return database;
}
