import { runMigrations } from 'bullmq';
import { withClient } from '../../database/connect/session.js';
import { PROBE, QUEUE_NAMES } from './queue-names.js';

/** @throws {Error} if the tables of the queues are missing */
export async function checkQueueTables(url: string): Promise<void> {
  const { rows } = await withClient(url, (client) =>
    client.query<{ isThere: boolean }>(`SELECT to_regnamespace('bullmq') IS NOT NULL AS "isThere"`),
  );
  if (!rows[0]?.isThere)
    throw new Error('The database has no tables for the queues: run migrate without REDIS_URL, or set REDIS_URL here.');
}

export async function createQueueTables(ownerUrl: string): Promise<void> {
  await withClient(ownerUrl, async (client) => {
    await runMigrations(client as unknown as Parameters<typeof runMigrations>[0]);
    // BullMQ makes a queue's sequence at its first job, which a role that owns nothing may not do. Its id is skipped.
    await client.query('SELECT bullmq.next_job_id(name) FROM unnest($1::text[]) AS name', [[...QUEUE_NAMES, PROBE]]);
  });
}
