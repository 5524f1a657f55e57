import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';

/** The compiled service in a separate process. */
export interface ServiceProcess {
  url: string;
  child: ChildProcess;
  stop(): Promise<void>;
}

/** Default settings of a measurement: no platform, and random keys. */
export const IDLE_SETTINGS = {
  NODE_ENV: 'production',
  PORT: '0',
  PLATFORM_BASE_URL: 'http://127.0.0.1:9', // no program listens there
  PLATFORM_API_KEY: 'bench',
  PLATFORM_WEBHOOK_SECRET: 'bench',
  ADMIN_API_KEY: randomBytes(24).toString('hex'),
  DATA_KEYS: `bench:${randomBytes(32).toString('base64')}`,
  FINGERPRINT_KEYS: `bench:${randomBytes(32).toString('base64')}`,
  AUDIT_KEYS: `bench:${randomBytes(32).toString('base64')}`,
};

/**
 * Starts the service and waits until it is ready.
 *
 * @param settings its environment in addition to PATH, HOME and the default settings
 * @throws {Error} with its last lines if it ends before that
 */
export async function startService(settings: Record<string, string>): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [path.resolve(__dirname, '../src/main.js')], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...IDLE_SETTINGS, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let last = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    last = (last + text).slice(-2_000);
  });
  for await (const line of createInterface({ input: child.stdout })) {
    last = `${last}${line}\n`.slice(-2_000);
    const said = line.startsWith('{') ? (JSON.parse(line) as { ready?: boolean; address?: string }) : {};
    if (!said.ready) continue;
    child.stdout.resume(); // because a full pipe would block the process
    return { url: said.address ?? '', child, stop: () => stop(child) };
  }
  throw new Error(`The service ended before it was ready:\n${last}`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}
