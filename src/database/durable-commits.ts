import type pg from 'pg';
import { withClient } from './one-client.js';

const FAULT =
  'PostgreSQL runs with synchronous_commit off for this role or database; set it to on, otherwise a crash takes back ' +
  'acknowledged webhooks, and people are made twice.';

/**
 * Says whether a commit may be lost once it has returned: the mark of a create and a webhook's 204 stand on it.
 *
 * @returns undefined when it may not
 */
export async function commitFault(client: Pick<pg.Client, 'query'>): Promise<string | undefined> {
  const { rows } = await client.query<{ mode: string }>(`SELECT current_setting('synchronous_commit') AS mode`);
  return rows[0]?.mode === 'off' ? FAULT : undefined;
}

/** @throws {Error} when commits may be lost. @param url of the runtime role */
export async function checkDurableCommits(url: string): Promise<void> {
  const fault = await withClient(url, commitFault);
  if (fault) throw new Error(fault);
}
