import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { compose, InstalledSecrets } from '../../harness/deployment-files.js';
import { freePort } from '../../harness/free-port.js';
import { askRedis } from '../../harness/redis-server.js';
import { until } from '../../harness/until.js';

/** Runs only if a redis-server is installed, as the suites on Redis do. */
const testWithRedis = process.env.TEST_REDIS_URL ? test : test.skip;

testWithRedis('the Redis of docker-compose.yml needs its password, and drops no jobs', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-compose-'));
  const secrets = new InstalledSecrets();
  const port = await freePort();
  /** Runs a command of the file outside a container: with the folder of the secrets, and with a free port. */
  const here = (command = '') =>
    command
      .replaceAll('$$', '$')
      .replaceAll('/run/secrets', secrets.folder)
      .replace('redis-server ', `redis-server --bind 127.0.0.1 --port ${port} `)
      .replace('redis-cli ', `redis-cli -p ${port} `);
  const { command, healthcheck } = compose().services.redis ?? {};
  const redis = spawn('sh', ['-c', here(command?.at(-1))], { cwd: folder, stdio: 'ignore' });
  try {
    await until('Redis answers', async () => (await askRedis(port, 'PING')).startsWith('-NOAUTH'));
    const isHealthy = () => spawnSync('sh', ['-c', here(healthcheck?.test.at(-1))]).status === 0;
    expect(isHealthy()).toBe(true);
    const password = secrets.read('redis-password').trim();
    const ask = (words: string[]) =>
      spawnSync('redis-cli', ['-p', String(port), ...words], { env: { ...process.env, REDISCLI_AUTH: password } });
    const settings = ask(['CONFIG', 'GET', 'maxmemory-policy', 'appendonly']).stdout.toString().split('\n');
    expect(settings).toEqual(expect.arrayContaining(['noeviction', 'yes']));
    expect(ask(['CONFIG', 'SET', 'requirepass', 'another']).status).toBe(0);
    expect(isHealthy()).toBe(false);
  } finally {
    redis.kill();
    await once(redis, 'exit');
    rmSync(folder, { recursive: true });
  }
});
