import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { PostgresBinaries } from './embedded-postgres-binaries.js';
import type { PostgresHome } from './embedded-postgres-home.js';

/** One initialised database folder with what belongs to it. */
export interface Cluster extends PostgresHome {
  readonly binaries: PostgresBinaries;
  readonly data: string;
  readonly logFile: string;
  readonly password: string;
}

/** The role that initdb makes, and the database that the service uses. */
export const CLUSTER_USER = 'notebridge';

/**
 * The cluster in `home`, made when there is none. It is made under another name and renamed when complete, data and
 * password together, so a killed attempt leaves nothing that counts as a cluster. To be called under the lock.
 *
 * @param durable false skips the flush to disk (tests that don't judge durability)
 */
export async function ensureCluster(
  home: PostgresHome,
  binaries: PostgresBinaries,
  durable: boolean,
): Promise<Cluster> {
  const place = path.join(home.folder, 'cluster');
  if (!existsSync(place)) {
    for (const left of readdirSync(home.folder).filter((name) => name.startsWith('cluster.new'))) {
      rmSync(path.join(home.folder, left), { recursive: true, force: true });
    }
    const draft = path.join(home.folder, 'cluster.new');
    await initialise(home, binaries, draft, durable);
    renameSync(draft, place);
  }
  return {
    ...home,
    binaries,
    data: path.join(place, 'data'),
    logFile: path.join(place, 'server.log'),
    password: readFileSync(path.join(place, 'password'), 'utf8'),
  };
}

async function initialise(
  home: PostgresHome,
  binaries: PostgresBinaries,
  draft: string,
  durable: boolean,
): Promise<void> {
  const passwordFile = path.join(draft, 'password');
  mkdirSync(draft, { mode: 0o700 });
  writeFileSync(passwordFile, randomBytes(24).toString('base64url'), { mode: 0o600 });
  if (home.user) {
    for (const place of [draft, passwordFile]) chownSync(place, home.user.uid, home.user.gid);
  }
  await run(home, binaries.initdb, [
    `--pgdata=${path.join(draft, 'data')}`,
    `--username=${CLUSTER_USER}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
  ]);
}

/** What a PostgreSQL program is given of our environment: nothing, for ours holds secrets. */
export const PROGRAM_ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

function run(home: PostgresHome, program: string, args: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: home.folder,
      env: PROGRAM_ENVIRONMENT,
      stdio: ['ignore', 'ignore', 'pipe'],
      ...home.user,
    });
    let complaint = '';
    child.stderr.on('data', (chunk: Buffer) => {
      complaint += chunk.toString();
    });
    const failed = (why: string) =>
      reject(
        new Error(
          `${path.basename(program)} failed (${why}): mend that, or set DATABASE_URL to use another PostgreSQL.`,
        ),
      );
    child.once('error', (error) => failed(error.message));
    child.once('close', (code) => (code === 0 ? resolve() : failed(complaint.trim() || `exit code ${code}`)));
  });
}
