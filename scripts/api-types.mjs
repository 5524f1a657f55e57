// npm run api-types -- URL: writes the console's types from the API's description, as a running service gives it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { nodeModule, quietly, root } from './processes.mjs';
import { Fault } from './setup.mjs';

/** Where the types stand. */
export const API_TYPES = path.join(root, 'console/api/schema.d.ts');

/** Reads `/openapi.json` of a service, and writes the types that openapi-typescript makes of it. */
export async function writeApiTypes(url, file = API_TYPES) {
  const answer = await fetch(`${url.replace(/\/$/, '')}/openapi.json`).catch(() => {
    throw new Fault(`No service answers at ${url}; start one, or name its address: npm run api-types -- URL.`);
  });
  if (!answer.ok) throw new Fault(`${url}/openapi.json answered ${answer.status}: is API_DOCS on there?`);
  const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-openapi-'));
  const description = path.join(folder, 'openapi.json');
  try {
    // Servers are an installation's, not the API's.
    writeFileSync(description, JSON.stringify({ ...(await answer.json()), servers: undefined }));
    const command = nodeModule('openapi-typescript', 'openapi-typescript');
    const { code, output } = await quietly(process.execPath, [command, description, '--output', file]);
    if (code !== 0) throw new Error(output);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
