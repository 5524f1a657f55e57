import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { freePort } from '../harness/free-port.js';
import type { Program, SystemUser } from '../harness/program.js';
import { askRedis, findRedisServer, type RedisServer, startRedis } from '../harness/redis-server.js';
import { READY, type Service, serviceOf } from '../harness/service.js';
import { until } from '../harness/until.js';
import { DEFAULT_API_KEY } from '../simulator/app.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from './support/app.js';
import { environmentOf, exampleSettings, readCompose } from './support/compose.js';
import { createDatabase } from './support/databases.js';
import { buildImage, type Image } from './support/image.js';
import { usePrograms } from './support/programs.js';
import { type Mirror, useMirrors } from './support/service.js';

const ROOT = path.resolve(__dirname, '..');
const { services } = readCompose();

/** Stands for the user of the image: one who owns nothing here. Nobody but root can become another. */
const NOBODY: SystemUser | undefined = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;

let image: Image;

beforeAll(() => {
  image = buildImage();
});
afterAll(() => image?.remove());

describe('the image that the Dockerfile makes', () => {
  const within = (folder: string) => readdirSync(path.join(image.folder, folder)).sort();

  it('holds the service, its console, its command and its migrations, and nothing else', () => {
    expect(within('.')).toEqual(['bin', 'dist', 'node_modules', 'package.json', 'prisma']);
    expect(within('dist')).toEqual(['console', 'src']);
    expect(within('prisma')).toEqual(['migrations']);
  });

  it('has the packages that neither development nor an option asks for, and no others', () => {
    type Lock = { packages: Record<string, { dev?: boolean; optional?: boolean; devOptional?: boolean }> };
    const read = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as Lock;
    const wanted = Object.entries(read(path.join(ROOT, 'package-lock.json')).packages)
      .filter(([place, { dev, optional, devOptional }]) => place && !dev && !optional && !devOptional)
      .map(([place]) => place);
    const installed = read(path.join(image.folder, 'node_modules/.package-lock.json')).packages;
    expect(Object.keys(installed).sort()).toEqual(wanted.sort());
  });

  (NOBODY ? it : it.skip)('can be written nowhere by another user (which root alone can try)', () => {
    expect(image.user).toMatch(/^(?!root$)\w+$/);
    const found = spawnSync('find', ['.', '!', '-type', 'l', '-writable'], { cwd: image.folder, ...NOBODY });
    expect([found.status, String(found.stdout), String(found.stderr)]).toEqual([0, '', '']);
  });
});

const redisServer = findRedisServer();
const describeOnRedis = redisServer === undefined ? describe.skip : describe;

async function keysOf(port: number, password: string): Promise<string[]> {
  const redis = new Redis({ port, host: '127.0.0.1', password });
  try {
    return await redis.keys('*');
  } finally {
    redis.disconnect();
  }
}

describeOnRedis('the services of docker-compose.yml, without containers', () => {
  const run = usePrograms();
  const newMirror = useMirrors();
  const role = `service_${randomBytes(6).toString('hex')}`;
  const password = randomBytes(24).toString('hex');
  let folder: string;
  let redis: RedisServer;
  let mirror: Mirror;
  let settings: Record<string, string>;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'notebridge-redis-'));
    redis = await startRedis(redisServer ?? '', folder);
    expect(await askRedis(redis.port, `CONFIG SET requirepass ${password}`)).toBe('+OK');
    mirror = await newMirror({ database: await createDatabase(process.env.TEST_PG_URL ?? '') });
    const filled = {
      PLATFORM_BASE_URL: mirror.simulator.url,
      PLATFORM_API_KEY: DEFAULT_API_KEY,
      PLATFORM_WEBHOOK_SECRET: WEBHOOK_SECRET,
      ADMIN_API_KEY: ADMIN_KEY,
      POSTGRES_PASSWORD: password,
      SERVICE_PASSWORD: password,
      REDIS_PASSWORD: password,
      DATA_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    };
    const required = exampleSettings().filter(({ isSet }) => isSet);
    expect(required.map(({ name }) => name).filter((name) => !(name in filled))).toEqual([]);
    settings = { ...filled, PLATFORM_CONTRACT: 'contract/platform.json', SHUTDOWN_DELAY_SECONDS: '0' };
    const [, mounted = ''] = services.api?.volumes?.[0]?.split(':') ?? [];
    mkdirSync(path.join(image.root, mounted));
    cpSync(path.join(ROOT, 'simulator/contract.json'), path.join(image.root, mounted, 'platform.json'));
  });
  afterAll(async () => {
    await redis?.stop();
    rmSync(folder, { recursive: true, force: true });
    // Its rights went with the database.
    const client = new pg.Client({ connectionString: process.env.TEST_PG_URL });
    await client.connect();
    await client.query(`DROP ROLE IF EXISTS ${role}`).finally(() => client.end());
  });

  /** An address of a store within Compose's network as the one that stands for it here. */
  function here(address: string): string {
    const url = new URL(address);
    if (url.hostname === 'redis') return Object.assign(url, { hostname: '127.0.0.1', port: redis.port }).toString();
    expect(url.hostname).toBe('postgres');
    const database = new URL(mirror.database.url);
    if (url.username === 'notebridge') return database.toString();
    return Object.assign(database, { username: role, password: url.password }).toString();
  }

  const port = { migrate: 0, api: 0, worker: 0 };
  type Name = keyof typeof port;

  /** Starts one of the services as Compose does: its command, its settings, its user. */
  async function start(name: Name, ready?: RegExp): Promise<Program> {
    const service = services[name] ?? {};
    port[name] = await freePort();
    const env = { ...image.env, ...environmentOf(service, settings) };
    for (const setting of ['DATABASE_URL', 'DATABASE_OWNER_URL', 'REDIS_URL'])
      if (env[setting]) env[setting] = here(env[setting]);
    const own = { HOST: '127.0.0.1', PORT: String(port[name]), HOME: '/nonexistent', TMPDIR: undefined };
    const [program, ...words] = service.command ?? image.command;
    expect(program).toBe('node');
    const at = words.findIndex((word) => !word.startsWith('--'));
    return run({
      nodeArgs: words.slice(0, at),
      file: path.join(image.folder, words[at] ?? ''),
      args: words.slice(at + 1),
      env: { ...env, ...own },
      cwd: image.folder,
      user: NOBODY,
      ready,
    });
  }

  /** The exit code of a program within the image. */
  function exitCode(args: string[], env: Record<string, string> = {}): number | null {
    const { PATH } = process.env;
    return spawnSync(process.execPath, args, { cwd: image.folder, env: { PATH, ...env }, ...NOBODY }).status;
  }

  const isHealthy = (name: Name) => {
    const [kind, program, ...args] = services[name]?.healthcheck?.test ?? [];
    expect([kind, program]).toEqual(['CMD', 'node']);
    return exitCode(args.map((arg) => arg.replace('127.0.0.1:3000', `127.0.0.1:${port[name]}`))) === 0;
  };

  const paths = () => readdirSync(image.folder, { recursive: true, encoding: 'utf8' }).sort();

  it('migrate, then serve and work apart on PostgreSQL and Redis, and leave no file behind', async () => {
    const before = paths();
    const migration = await start('migrate');
    expect([await migration.ended(), migration.output()]).toEqual([0, expect.any(String)]);
    const [api, worker] = await Promise.all([start('api', READY), start('worker', READY)]);
    for (const name of ['api', 'worker'] as const) await until(`${name} is healthy`, () => isHealthy(name));

    const service: Service = serviceOf(api, ADMIN_KEY);
    const person = { email: 'ada.osei@example.org', firstName: 'Ada', lastName: 'Osei' };
    await service.call('PUT', '/v1/providers/p-1', { body: person });
    await until('the worker has made the person', async () => {
      const { body } = await service.call('GET', '/v1/providers/p-1', { wait: 5 });
      return body.sync.state === 'synced';
    });
    expect(await keysOf(redis.port, password)).toContainEqual(expect.stringMatching(/:user-management:/));

    const page = await (await fetch(`${service.url}/console`)).text();
    const script = /src="(\/console\/assets\/[^"]+\.js)"/.exec(page)?.[1];
    expect((await fetch(`${service.url}${script}`)).status).toBe(200);
    const client = { NOTEBRIDGE_URL: service.url, NOTEBRIDGE_KEY: ADMIN_KEY };
    expect(exitCode(['bin/notebridge.js', 'people', '--json'], client)).toBe(0);

    expect(await Promise.all([api.kill('SIGTERM'), worker.kill('SIGTERM')])).toEqual([0, 0]);
    expect(isHealthy('api')).toBe(false);
    expect(paths()).toEqual(before);
  });
});
