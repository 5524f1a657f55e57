import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { withClient } from '../src/database/connect/session.js';
import { freePort } from './free-port.js';
import { until } from './until.js';

/** A PostgreSQL, or a pooler in front of one. */
export interface PostgresServer {
  readonly url: string;
  readonly home: string;
  /** Missing for the embedded PostgreSQL. */
  restart?(): Promise<void>;
  release(): Promise<void>;
}

/** A server and its clients, which are in one folder. */
const PROGRAMS = ['initdb', 'postgres', 'pg_basebackup', 'pg_dump', 'pg_restore', 'psql'];

/** The folder in which Debian installs each version, because it puts no server on the PATH. */
const DEBIAN = '/usr/lib/postgresql';

/** The folder with the newest installed server and clients of PostgreSQL; undefined without one. */
export function findPostgresPrograms(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const installed = versions.map((version) => path.join(DEBIAN, version, 'bin'));
  return [...(process.env.PATH ?? '').split(path.delimiter), ...installed].find((folder) =>
    PROGRAMS.every((program) => existsSync(path.join(folder, program))),
  );
}

/** The user that a server runs as: PostgreSQL does not run as root. */
export function serverUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Creates a folder that only the server's user can read. */
export function serverFolder(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const { uid, gid } = serverUser();
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
  chmodSync(folder, 0o700);
  return folder;
}

const optionsIn = (data: string) => ({
  ...serverUser(),
  env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
  cwd: data,
});

/**
 * Starts a PostgreSQL with an empty database.
 *
 * @param programs the folder of initdb and postgres
 * @param place an empty folder
 * @param settings lines of postgresql.conf
 */
export async function startPostgres(programs: string, place: string, settings = ''): Promise<PostgresServer> {
  const data = serverFolder(path.join(place, 'data'));
  const words = ['-D', data, '-U', 'owner', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
  execFileSync(path.join(programs, 'initdb'), words, { ...optionsIn(data), stdio: 'pipe' });
  appendFileSync(path.join(data, 'postgresql.conf'), settings);
  return servePostgres(programs, data);
}

/** Starts a PostgreSQL on an existing data directory. */
export async function servePostgres(programs: string, data: string): Promise<PostgresServer> {
  const port = await freePort();
  const url = `postgresql://owner:none@127.0.0.1:${port}/postgres`;
  let server: ReturnType<typeof spawn>;
  const start = async () => {
    const args = ['-D', data, '-p', String(port), '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='];
    server = spawn(path.join(programs, 'postgres'), args, { ...optionsIn(data), stdio: 'ignore' });
    await until('PostgreSQL answers', () => {
      if (server.exitCode !== null) throw new Error(`PostgreSQL ended in ${data} (exit code ${server.exitCode})`);
      return answers(url);
    });
  };
  const release = async () => {
    server.kill('SIGINT');
    if (server.exitCode === null) await once(server, 'exit');
  };
  await start();
  return { url, home: path.dirname(data), release, restart: () => release().then(start) };
}

/** True if the database at `url` executes statements. */
export const answers = (url: string): Promise<boolean> =>
  withClient(url, (client) => client.query('SELECT')).then(
    () => true,
    () => false,
  );
