import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const HOST = '127.0.0.1';

/** The redis-server on the PATH, or undefined. */
export function findRedisServer() {
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

/** A Redis that keeps nothing on disk, on `port` (0: a free one), ready to be used. */
export async function startRedis(program, folder, port = 0) {
  const chosen = port || (await freePort());
  const settings = {
    port: chosen,
    bind: HOST,
    save: '',
    appendonly: 'no',
    'maxmemory-policy': 'noeviction',
    databases: 64,
  };
  const child = spawn(
    program,
    Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
    {
      cwd: folder,
      stdio: 'ignore',
    },
  );
  const ended = new Promise((resolve) => child.once('exit', resolve));
  while (!(await answers(chosen))) {
    if (child.exitCode !== null) throw new Error(`redis-server ended at once (exit code ${child.exitCode})`);
    await delay(20);
  }
  return {
    url: `redis://${HOST}:${chosen}`,
    port: chosen,
    pid: child.pid,
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal);
      await ended;
    },
  };
}

function answers(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, HOST, () => socket.write('PING\r\n'));
    socket.setTimeout(1_000, () => socket.destroy());
    socket.once('data', (data) => {
      resolve(data.toString().startsWith('+PONG'));
      socket.destroy();
    });
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
  });
}

function freePort() {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.listen(0, HOST, () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
