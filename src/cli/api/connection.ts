import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { ClientEnv } from '../../config/client-env.js';
import { CliFault } from './cli-fault.js';

/** Where the service is and what opens it. */
export interface Connection {
  url: string;
  key: string;
}

/** What `npm run demo` leaves for the command line. */
export interface DemoNote extends Connection {
  /** The settings of the demo's service. */
  environment: Record<string, string>;
}

/** The name of that note in the data folder. */
export const DEMO_NOTE = 'demo.json';

const DEFAULT_URL = 'http://127.0.0.1:3000';

/**
 * The service to speak to: as the environment says, else the demo of this clone.
 *
 * @throws {CliFault} when no key is to be found
 */
export function connectionFrom(env: ClientEnv): Connection {
  if (env.keyFault) throw new CliFault(env.keyFault);
  const demo = readDemoNote(env.dataDir);
  const url = (env.url ?? (env.key ? undefined : demo?.url) ?? DEFAULT_URL).replace(/(?<!\/)\/+$/, '');
  const key = env.key ?? (demo && url === demo.url ? demo.key : undefined);
  if (!key)
    throw new CliFault('No key is known: set NOTEBRIDGE_KEY to an API key of the service, or run the demo first.');
  return { url, key };
}

/** What the last demo of this clone left, or undefined. */
export function readDemoNote(dataDir: string): DemoNote | undefined {
  try {
    return JSON.parse(readFileSync(path.join(dataDir, DEMO_NOTE), 'utf8')) as DemoNote;
  } catch {
    return undefined;
  }
}
