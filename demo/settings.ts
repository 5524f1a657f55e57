import { randomBytes } from 'node:crypto';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { DEMO_NOTE, type DemoNote } from '../src/cli/api/connection.js';
import { makeDataFolder } from './embedded-postgres/data-folder.js';

/** The project's folder. */
export const ROOT = path.resolve(__dirname, '../..');

/** The folder of this clone's demo and development. */
const DATA = path.resolve(ROOT, process.env.DATA_DIR ?? '.data');

/** The data of one command: its database and its logs. */
export const dataOf = (command: 'demo' | 'dev'): string => path.join(DATA, command);

/** The platform's limit in the specification: user-management calls in any 60 seconds. */
export const CALLS_PER_MINUTE = 300;

/** The service's default port. */
export const USUAL_PORT = '3000';

/** The settings of the service and of the platform's simulator. */
export interface LocalSettings {
  service: Record<string, string>;
  simulator: Record<string, string>;
}

/**
 * The settings of a service and a simulator on this machine. The first run creates and stores its secrets.
 *
 * @param folder of `dataOf`
 * @throws {Error} naming DATA_DIR
 */
export async function localSettings(folder: string): Promise<LocalSettings> {
  for (const place of [DATA, folder]) makeDataFolder(place);
  const kept = keptEnvironment();
  const secret = (name: string) => kept[name] ?? randomBytes(24).toString('base64url');
  const simulatorPort = await freePort(Number(process.env.SIMULATOR_PORT ?? 4010));
  const simulatorUrl = `http://127.0.0.1:${simulatorPort}`;
  const port = String(await freePort(Number(process.env.PORT ?? USUAL_PORT)));
  const service = {
    PLATFORM_BASE_URL: simulatorUrl,
    PLATFORM_API_KEY: secret('PLATFORM_API_KEY'),
    PLATFORM_WEBHOOK_SECRET: secret('PLATFORM_WEBHOOK_SECRET'),
    PLATFORM_PARTNER_DOMAIN: simulatorUrl,
    PLATFORM_CONTRACT: path.join(ROOT, 'simulator/contract.json'),
    ADMIN_API_KEY: secret('ADMIN_API_KEY'),
    DATA_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    FINGERPRINT_KEYS: `f1:${randomBytes(32).toString('base64')}`,
    AUDIT_KEYS: `a1:${randomBytes(32).toString('base64')}`,
    PORT: port,
    REDIRECT_ALLOWED_ORIGINS: `http://127.0.0.1:${port}`,
    USER_MANAGEMENT_CALLS_PER_MINUTE: String(CALLS_PER_MINUTE),
    // The platform runs on this machine, too: if it is busy, an answer is late but not lost.
    PLATFORM_TIMEOUT_SECONDS: '30',
    UNKNOWN_OUTCOME_GRACE_SECONDS: '2',
  };
  const simulator = {
    SIMULATOR_PORT: String(simulatorPort),
    SIMULATOR_API_KEY: service.PLATFORM_API_KEY,
    SIMULATOR_CALLS_PER_MINUTE: String(CALLS_PER_MINUTE),
    SIMULATOR_WEBHOOK_URL: `http://127.0.0.1:${port}/webhooks/platform`,
    SIMULATOR_WEBHOOK_SECRET: service.PLATFORM_WEBHOOK_SECRET,
  };
  return { service, simulator };
}

/** Stores the URL and the key for `npx notebridge`, readable only by this user. */
export function leaveNote(url: string, environment: Record<string, string>): void {
  const note: DemoNote = { url, key: environment.ADMIN_API_KEY ?? '', environment };
  const file = noteFile();
  writeFileSync(file, `${JSON.stringify(note, null, 2)}\n`, { mode: 0o600 });
  chmodSync(file, 0o600);
}

/** The file with the demo's keys. */
export function noteFile(): string {
  return path.join(DATA, DEMO_NOTE);
}

function keptEnvironment(): Record<string, string> {
  try {
    return (JSON.parse(readFileSync(noteFile(), 'utf8')) as DemoNote).environment;
  } catch {
    return {};
  }
}

/** This port, or any free one if it is in use. */
async function freePort(wanted: number): Promise<number> {
  return (await tryPort(wanted)) ?? (await tryPort(0)) ?? wanted;
}

function tryPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.once('error', () => resolve(undefined));
    probe.listen(port, '127.0.0.1', () => {
      const { port: found } = probe.address() as net.AddressInfo;
      probe.close(() => resolve(found));
    });
  });
}
