import { request } from 'node:http';
import { json } from 'node:stream/consumers';
import type { World } from '../../harness/world/world.js';
import { ADMIN_KEY } from '../support/app.js';
import type { ImportBody } from './imports.js';

/** Uploads whose import was opened, and that wait for their content. */
const OPEN = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'notebridge-uploads'
  AND state = 'idle in transaction' AND query LIKE 'INSERT INTO imports %'`;

/** Begins to upload a CSV file. @returns what sends its content and ends it; it returns the import's id */
export async function openUpload(world: World, query: string): Promise<(content: string) => Promise<string>> {
  await world.advance('1 ms');
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'text/csv' };
  const sending = request(`${world.url}/v1/imports?${query}`, { method: 'POST', headers });
  const answer = new Promise<ImportBody>((resolve, reject) => {
    sending.once('response', (response) => void json(response).then((body) => resolve(body as ImportBody), reject));
    sending.once('error', reject);
  });
  sending.flushHeaders();
  await world.eventually('the upload is open', async () => (await world.sql(OPEN)).length === 1);
  return async (content) => {
    sending.end(content);
    return (await answer).id;
  };
}
