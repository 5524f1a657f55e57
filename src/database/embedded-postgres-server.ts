import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { closeSync, existsSync, fchownSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { CLUSTER_USER, type Cluster, PROGRAM_ENVIRONMENT } from './embedded-postgres-cluster.js';
import { processIdentity, runsWithArgument } from './embedded-postgres-process.js';

export interface ServerSettings {
  readonly fsync: boolean;
  readonly maxConnections: number;
}

/** A server that runs, and a session on it. */
export interface OpenedServer {
  readonly session: pg.Client;
  readonly port: number;
  /** Undefined when it has gone by now. */
  readonly pid: number | undefined;
  /** Whether it ran already. */
  readonly adopted: boolean;
}

const HOST = '127.0.0.1';
/**
 * Below those that systems take for outgoing connections (Linux from 32768, others from 49152): while the server is
 * away nobody's connection sits on its port.
 */
const PORTS = { from: 20_000, below: 32_000 };
/** SQLSTATEs of a login that will not be taken later either: a wrong password, a role or rule that is missing. */
const REFUSED_LOGINS = ['28P01', '28000'];
const POLL_MS = 25;
/** How long the processes that a killed server left behind may take to notice and go. */
const ORPHANS_MS = 30_000;
const STOP_MS = 60_000;

/** The address of `database` on the cluster's server at `port`, password included: never to be logged. */
export function clusterUrl(cluster: Cluster, port: number, database: string): string {
  return `postgresql://${CLUSTER_USER}:${cluster.password}@${HOST}:${port}/${database}`;
}

/** What the server wrote about itself (postmaster.pid: pid on line 1, port on line 4); null when none runs. */
export function readPostmaster(cluster: Cluster): { pid: number; port: number } | null {
  try {
    const lines = readFileSync(path.join(cluster.data, 'postmaster.pid'), 'utf8').split('\n');
    return { pid: Number(lines[0]), port: Number(lines[3]) };
  } catch {
    return null;
  }
}

/**
 * A session on the cluster's running server, which is started when it doesn't run. A `postmaster.pid` whose process
 * is dead, or is another program by now, is cleared away. To be called under the lock.
 *
 * @param formerPort where the server must stand again if it has to be started, since its address is in use; a server
 * that stopped in order left no note of it
 */
export async function connectOrStart(
  cluster: Cluster,
  settings: ServerSettings,
  applicationName: string,
  formerPort: number | null = null,
): Promise<OpenedServer> {
  let lastPort = formerPort;
  for (let running = readPostmaster(cluster); running; running = readPostmaster(cluster)) {
    const isOurs = runsWithArgument(running.pid, cluster.data);
    const session = running.port ? await connect(cluster, running.port, applicationName, isOurs) : null;
    if (session) return { session, port: running.port, pid: running.pid, adopted: true };
    lastPort = running.port || lastPort;
    if (!isOurs) rmSync(path.join(cluster.data, 'postmaster.pid'), { force: true });
    else await delay(POLL_MS); // it is starting, recovering or stopping
  }
  const giveUpAt = Date.now() + ORPHANS_MS;
  for (;;) {
    const port = formerPort ?? (lastPort && (await isFree(lastPort)) ? lastPort : await freePort());
    const session = await start(cluster, settings, port, applicationName);
    if (session) return { session, port, pid: readPostmaster(cluster)?.pid, adopted: false };
    const complaint = lastComplaint(cluster.logFile);
    const passes = /shared memory block|could not bind|could not create any TCP|lock file "postmaster.pid"/.test(
      complaint,
    );
    if (!passes || Date.now() > giveUpAt) {
      throw new Error(`The embedded PostgreSQL does not start (${complaint}): its log is ${cluster.logFile}.`);
    }
    await delay(POLL_MS);
  }
}

/** Stops the server: sessions are ended, everything is written. To be called under the lock. */
export async function stopServer(cluster: Cluster): Promise<void> {
  const running = readPostmaster(cluster);
  if (!running || !runsWithArgument(running.pid, cluster.data)) return;
  process.kill(running.pid, 'SIGINT'); // PostgreSQL's "fast" shutdown
  const giveUpAt = Date.now() + STOP_MS;
  while (processIdentity(running.pid) !== null) {
    if (Date.now() > giveUpAt) {
      throw new Error(`The embedded PostgreSQL (process ${running.pid}) does not stop: see ${cluster.logFile}.`);
    }
    await delay(POLL_MS);
  }
}

/** Ends a server at once, writing nothing more: its data is another's by now. */
export function killServer(cluster: Cluster, pid: number): void {
  if (runsWithArgument(pid, cluster.data)) process.kill(pid, 'SIGQUIT'); // PostgreSQL's "immediate" shutdown
}

/** Null when the server ends before it takes connections; its log says why. */
async function start(
  cluster: Cluster,
  settings: ServerSettings,
  port: number,
  applicationName: string,
): Promise<pg.Client | null> {
  const child = spawnServer(cluster, settings, port);
  let ended = false;
  child.once('exit', () => {
    ended = true;
  });
  child.once('error', () => {
    ended = true;
  });
  while (!ended) {
    const session = await connect(cluster, port, applicationName, true);
    if (session) return session;
    await delay(POLL_MS);
  }
  return null;
}

/** Detached, with files of its own for output: the server outlives whoever started it. */
function spawnServer(cluster: Cluster, settings: ServerSettings, port: number): ChildProcess {
  const setting = {
    listen_addresses: HOST,
    port,
    unix_socket_directories: '',
    max_connections: settings.maxConnections,
    fsync: settings.fsync ? 'on' : 'off',
    full_page_writes: settings.fsync ? 'on' : 'off',
    TimeZone: 'UTC',
    log_timezone: 'UTC',
    // A failed statement and its details hold personal data: the server's log gets neither.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
  };
  if (existsSync(cluster.logFile)) renameSync(cluster.logFile, `${cluster.logFile}.1`);
  const log = openSync(cluster.logFile, 'a', 0o600);
  try {
    if (cluster.user) fchownSync(log, cluster.user.uid, cluster.user.gid);
    const child = spawn(
      cluster.binaries.postgres,
      ['-D', cluster.data, ...Object.entries(setting).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
      { cwd: cluster.data, env: PROGRAM_ENVIRONMENT, detached: true, stdio: ['ignore', log, log], ...cluster.user },
    );
    child.unref();
    return child;
  } finally {
    closeSync(log);
  }
}

/**
 * A session, or null when no server of this cluster takes one at `port`: only it knows the random password.
 *
 * @param isOurs whether that server surely is this cluster's: then a refused login is told, for waiting mends nothing
 */
async function connect(
  cluster: Cluster,
  port: number,
  applicationName: string,
  isOurs: boolean,
): Promise<pg.Client | null> {
  const client = new pg.Client({
    connectionString: clusterUrl(cluster, port, 'postgres'),
    application_name: applicationName,
    connectionTimeoutMillis: 2_000,
    keepAlive: true,
  });
  client.on('error', () => {}); // the session's end is what counts, and has an event of its own
  try {
    await client.connect();
    return client;
  } catch (error) {
    const { code } = error as { code?: string };
    if (!isOurs || !code || !REFUSED_LOGINS.includes(code)) return null;
    throw new Error(
      `The embedded PostgreSQL refuses its own login (${code}): put the file password back into ${path.dirname(cluster.data)} as it was made with the data, or set DATABASE_URL to use another PostgreSQL.`,
    );
  }
}

function lastComplaint(logFile: string): string {
  const lines = existsSync(logFile) ? readFileSync(logFile, 'utf8').split('\n') : [];
  const complaint = lines.filter((line) => /FATAL|PANIC|ERROR|error while loading/.test(line)).at(-1);
  return complaint?.replace(/^.*?(FATAL|PANIC|ERROR): */, '').trim() ?? 'it gave no reason';
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, HOST, () => probe.close(() => resolve(true)));
  });
}

async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = randomInt(PORTS.from, PORTS.below);
    if (await isFree(port)) return port;
  }
  throw new Error(
    `No port of ${HOST} from ${PORTS.from} to ${PORTS.below} could be taken; check the network settings.`,
  );
}
