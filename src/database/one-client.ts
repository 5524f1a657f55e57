import pg from 'pg';
import { SESSION_OPTIONS } from './database.js';

/** Runs work on a connection of its own, outside every pool: for what is done once, at start. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    options: SESSION_OPTIONS,
    connectionTimeoutMillis: 10_000,
  });
  await client.connect();
  return work(client).finally(() => client.end());
}
