import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '../harness/free-port.js';
import { findRedisServer } from '../harness/redis-server.js';
import { until } from '../harness/until.js';
import { validateEnv } from '../src/config/env.js';
import { shutdownDeadlineMs } from '../src/config/stopping.js';
import { type ComposeService, exampleSettings, readCompose } from './support/compose.js';
import { composeFault } from './support/compose-rules.js';
import { useMirrors } from './support/service.js';

const read = (file: string): string => readFileSync(path.resolve(__dirname, '..', file), 'utf8');
const compose = readCompose();
const service = (name: string): ComposeService => compose.services[name] ?? {};

/** Compose's own: they become part of addresses. */
const PASSWORDS = ['POSTGRES_PASSWORD', 'SERVICE_PASSWORD', 'REDIS_PASSWORD'];
const NOT_OURS = [...PASSWORDS, 'NODE_IMAGE', 'POSTGRES_IMAGE', 'REDIS_IMAGE'];

const examples = new Map(exampleSettings().map(({ name, value }) => [name, value]));
const known = [...read('src/config/env.ts').matchAll(/^ {2}(?:@.*\) )?([A-Z][A-Z_]+)[!?]?: /gm)].map(
  ([, name = '']) => name,
);

describe('the production set', () => {
  it('shows every setting in .env.example, and none that the service does not know', () => {
    const shown = [...examples.keys()].filter((name) => !NOT_OURS.includes(name) && !name.endsWith('_FILE'));
    expect(shown.sort()).toEqual(known.sort());
  });

  it('has examples that the service accepts', () => {
    const filled = Object.fromEntries([...examples].filter(([name, value]) => value && !name.endsWith('_FILE')));
    const secrets = {
      PLATFORM_API_KEY: 'key',
      PLATFORM_WEBHOOK_SECRET: 'a-secret-of-the-notebridge-deployment',
      ADMIN_API_KEY: 'a-first-key-of-the-deployment-tests',
    };
    expect(() => validateEnv({ ...filled, ...secrets })).not.toThrow();
  });

  it('sets in docker-compose.yml only what the service knows', () => {
    for (const name of ['api', 'worker', 'migrate']) {
      const unknown = Object.keys(service(name).environment ?? {}).filter(
        (setting) => !known.includes(setting) && !NOT_OURS.includes(setting),
      );
      expect(unknown).toEqual([]);
    }
  });

  it('migrates before api and worker start, on a Redis that keeps its jobs', () => {
    expect(service('migrate').command).toEqual(['node', 'dist/src/main.js', 'migrate']);
    for (const name of ['api', 'worker']) {
      expect(service(name).depends_on?.migrate?.condition).toBe('service_completed_successfully');
      expect(service(name).environment?.ROLES).toBe(name);
    }
  });

  it.each(['api', 'worker'])('keeps the owner of the tables from the %s, which has a role of its own', (name) => {
    const { environment = {} } = service(name);
    const role = (setting: string, of = environment) =>
      new URL(String(of[setting]).replace(/\$\{[^}]*\}/g, 'x')).username;
    expect(role('DATABASE_URL')).toBe('notebridge_service');
    for (const setting of ['DATABASE_OWNER_URL', ...PASSWORDS]) expect(environment[setting]).toBe('');
    const { environment: ofMigrate = {} } = service('migrate');
    expect(role('DATABASE_OWNER_URL', ofMigrate)).toBe(String(service('postgres').environment?.POSTGRES_USER));
    expect(ofMigrate.DATABASE_URL).toBe(environment.DATABASE_URL);
  });

  it.each(['api', 'worker'])(
    'gives the %s as long to stop as the longest delay and call that can be set take',
    (name) => {
      const { environment, stop_grace_period: grace } = service(name);
      const longest = (setting: string) =>
        Number(new RegExp(`@Seconds\\([\\d.]+, (\\d+)\\) ${setting}`).exec(read('src/config/env.ts'))?.[1]);
      const delay = String(environment?.SHUTDOWN_DELAY_SECONDS);
      expect(Number(/^(\d+)s$/.exec(grace ?? '')?.[1]) * 1_000).toBeGreaterThan(
        shutdownDeadlineMs({
          SHUTDOWN_DELAY_SECONDS: /^\d+$/.test(delay) ? Number(delay) : longest('SHUTDOWN_DELAY_SECONDS'),
          PLATFORM_TIMEOUT_SECONDS: longest('PLATFORM_TIMEOUT_SECONDS'),
        }),
      );
    },
  );

  it.each(Object.keys(compose.services))('confines %s', (name) => {
    const { user, read_only, cap_drop, security_opt, mem_limit, cpus, pids_limit } = service(name);
    expect({ read_only, cap_drop, security_opt }).toEqual({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    for (const limit of [mem_limit, cpus, pids_limit]) expect(limit).toBeDefined();
    if (service(name).image === 'notebridge') expect(read('Dockerfile')).toMatch(/^USER node$/m);
    else expect(user).toBe(name);
  });

  it('names every image where its digest can be put in its place', () => {
    const images = read('Dockerfile').match(/^FROM .*$/gm) ?? [];
    expect(images.every((line) => /^FROM \$\{NODE_IMAGE\}/.test(line))).toBe(true);
    for (const name of ['postgres', 'redis'])
      expect(service(name).image).toMatch(new RegExp(`^\\$\\{${name.toUpperCase()}_IMAGE:-${name}:\\d+\\}$`));
  });

  it('is a docker-compose.yml that the Compose specification allows', () => {
    expect(composeFault(compose)).toBeUndefined();
  });

  it('has every store, the api and the worker watched for their health', () => {
    for (const name of ['postgres', 'redis', 'api', 'worker']) expect(service(name).healthcheck).toBeDefined();
  });
});

describe('the health checks of docker-compose.yml', () => {
  const newMirror = useMirrors();

  /** The program of a health check with its arguments. */
  const commandOf = (name: string): [string, string[]] => {
    const [kind, program = '', ...args] = service(name).healthcheck?.test ?? [];
    expect(kind).toBe('CMD');
    return [program, args];
  };

  async function exitCode(program: string, args: string[], env: Record<string, string> = {}): Promise<number | null> {
    const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: 'ignore' });
    return (await once(child, 'exit'))[0];
  }

  /** In a container the service listens on one port; here it is where a test has it. */
  const askedAt = (args: string[], url: string) => args.map((arg) => arg.replace('http://127.0.0.1:3000', url));

  it.each([
    ['api', 'api,worker'],
    ['worker', 'worker'],
  ])('%s: healthy while the service is, and only then', async (name, roles) => {
    const [program, args] = commandOf(name);
    const mirror = await newMirror();
    const running = await mirror.start({ ROLES: roles });
    await until('it is healthy', async () => (await exitCode(program, askedAt(args, running.url))) === 0);
    await running.kill('SIGTERM');
    expect(await exitCode(program, askedAt(args, running.url))).toBe(1);
    const ill = createServer((_request, response) => response.writeHead(503).end()).listen(0, '127.0.0.1');
    await once(ill, 'listening');
    const { port } = ill.address() as AddressInfo;
    expect(await exitCode(program, askedAt(args, `http://127.0.0.1:${port}`))).toBe(1);
    ill.close();
  });

  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const onPath = (program: string) => folders.some((folder) => existsSync(path.join(folder, program)));

  (onPath('pg_isready') ? it : it.skip)('postgres: healthy while PostgreSQL takes connections', async () => {
    const [program, args] = commandOf('postgres');
    const { port } = new URL((await newMirror()).database.url);
    await until('PostgreSQL is healthy', async () => (await exitCode(program, args, { PGPORT: port })) === 0);
    expect(await exitCode(program, args, { PGPORT: '9' })).not.toBe(0); // nobody listens there
  });

  const redisServer = findRedisServer();
  (redisServer && onPath('redis-cli') ? it : it.skip)(
    'redis: healthy while Redis answers who knows the password',
    async () => {
      const [program, args] = commandOf('redis');
      const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-redis-'));
      const port = String(await freePort());
      const [shell = '', ...rest] = service('redis').command ?? [];
      const here = rest.map((part) =>
        part.replaceAll('$$', '$').replace('redis-server ', `${redisServer} --port ${port} --dir ${folder} `),
      );
      const REDISCLI_AUTH = 'password-of-the-tests';
      const redis = spawn(shell, here, { env: { ...process.env, REDISCLI_AUTH }, stdio: 'ignore' });
      const ended = once(redis, 'exit');
      const healthy = () => exitCode(program, ['-p', port, ...args], { REDISCLI_AUTH });
      await until('Redis is healthy', async () => (await healthy()) === 0);

      const told = (...words: string[]) =>
        spawnSync('redis-cli', ['-p', port, ...words], { encoding: 'utf8', env: { ...process.env, REDISCLI_AUTH } })
          .stdout;
      expect(spawnSync('redis-cli', ['-p', port, 'ping'], { encoding: 'utf8' }).stdout).toContain('NOAUTH');
      expect(told('config', 'get', 'maxmemory-policy')).toContain('noeviction');
      expect(told('config', 'get', 'appendonly')).toContain('yes');
      expect(spawnSync('ps', ['-o', 'args=', '-p', String(redis.pid)], { encoding: 'utf8' }).stdout).not.toContain(
        REDISCLI_AUTH,
      );
      redis.kill();
      await ended;
      expect(await healthy()).not.toBe(0);
      rmSync(folder, { recursive: true });
    },
  );
});
