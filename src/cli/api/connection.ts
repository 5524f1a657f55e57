import { readFileSync } from 'node:fs';
import path from 'node:path';
import { isLoopbackHost } from '../../config/urls.js';
import { CliFault } from './cli-fault.js';
import type { ClientEnv } from './client-env.js';

/** The URL of the service, and the key to use. */
export interface Connection {
  url: string;
  key: string;
  /** The user's id, for the audit log. */
  onBehalfOf?: string;
}

/** The file that `npm run demo` stores for the command line. */
export interface DemoNote extends Connection {
  /** The settings of the demo's service. */
  environment: Record<string, string>;
}

/** The name of that file in the data folder. */
export const DEMO_NOTE = 'demo.json';

const DEFAULT_URL = 'http://127.0.0.1:3000';

/**
 * The service to connect to: the one in the environment, otherwise this clone's demo.
 *
 * @throws {CliFault} if there is no key, or the key or the URL cannot be used
 */
export function connectionFrom(env: ClientEnv): Connection {
  if (env.keyFault) throw new CliFault(env.keyFault);
  const demo = readDemoNote(env.dataDir);
  const url = (env.url ?? (env.key ? undefined : demo?.url) ?? DEFAULT_URL).replace(/(?<!\/)\/+$/, '');
  const key = env.key ?? (demo && url === demo.url ? demo.key : undefined);
  if (!key)
    throw new CliFault('There is no API key. Set NOTEBRIDGE_KEY to a key of the service, or run the demo first.');
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new CliFault('The key contains invalid characters. Set NOTEBRIDGE_KEY to the key exactly as it was shown.');
  if (!/^https?:\/\/[^/]/.test(url) || !URL.canParse(url))
    throw new CliFault(`NOTEBRIDGE_URL must be a URL such as ${DEFAULT_URL}.`);
  if (!env.mayBeInsecure && !isPrivate(new URL(url)))
    throw new CliFault(
      'NOTEBRIDGE_URL is plain http to another host, so others could read the key and the data. Use https, or set NOTEBRIDGE_INSECURE_HTTP=true.',
    );
  return { url, key, onBehalfOf: env.onBehalfOf };
}

/** True if the traffic is encrypted or does not leave this machine. */
function isPrivate({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || isLoopbackHost(hostname);
}

/** Reads the file that this clone's last demo stored; undefined without one. */
export function readDemoNote(dataDir: string): DemoNote | undefined {
  try {
    return JSON.parse(readFileSync(path.join(dataDir, DEMO_NOTE), 'utf8')) as DemoNote;
  } catch {
    return undefined;
  }
}
