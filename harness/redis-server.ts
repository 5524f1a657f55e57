import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { freePort } from './free-port.js';
import { until } from './until.js';

const HOST = '127.0.0.1';

/** A Redis without persistence. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** The redis-server on the PATH; undefined without one. */
export function findRedisServer(): string | undefined {
  return (process.env.PATH ?? '')
    .split(path.delimiter)
    .map((folder) => path.join(folder, 'redis-server'))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/**
 * Starts Redis and waits until it answers.
 *
 * @param program path of redis-server
 * @param port 0 for any free port
 * @param more additional settings
 */
export async function startRedis(
  program: string,
  folder: string,
  port = 0,
  more: Record<string, string | number> = {},
): Promise<RedisServer> {
  const chosen = port || (await freePort());
  const settings = {
    port: chosen,
    bind: HOST,
    save: '',
    appendonly: 'no',
    'maxmemory-policy': 'noeviction',
    databases: 64,
    ...more,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(program, args, { cwd: folder, stdio: 'ignore' });
  const ended = once(child, 'exit');
  await until('Redis answers', async () => {
    if (child.exitCode !== null) throw new Error(`redis-server ended immediately (exit code ${child.exitCode})`);
    return (await askRedis(chosen, 'PING')) === '+PONG';
  });
  return {
    url: `redis://${HOST}:${chosen}`,
    port: chosen,
    pid: child.pid ?? 0,
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal);
      await ended;
    },
  };
}

/** The first line of Redis's answer to a command; empty without an answer. */
export function askRedis(port: number, command: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(port, HOST, () => socket.write(`${command}\r\n`));
    socket.once('data', (data) => {
      resolve(data.toString().trim());
      socket.destroy();
    });
    socket.once('error', () => resolve(''));
    socket.once('close', () => resolve(''));
  });
}
