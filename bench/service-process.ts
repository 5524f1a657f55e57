import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';

/** The compiled service in a process of its own. */
export interface ServiceProcess {
  url: string;
  child: ChildProcess;
  stop(): Promise<void>;
}

/**
 * Starts the service and waits until it says that it is ready.
 *
 * @param env its whole environment but for PATH and HOME
 * @throws {Error} with its last words when it ends before that
 */
export async function startService(env: Record<string, string>): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [path.resolve(__dirname, '../src/main.js')], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: 'production', PORT: '0', ...env },
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
    child.stdout.resume(); // nobody reads on, and a full pipe would stop it
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
