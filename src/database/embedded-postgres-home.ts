import { createHash } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { makeDataFolder } from './data-folder.js';
import { canEnter, type ServerUser, serverUser } from './embedded-postgres-user.js';

/** Where one project's server lives, and whom it runs as (null: as this process's own user). */
export interface PostgresHome {
  readonly folder: string;
  readonly user: ServerUser | null;
}

/** Where root's servers live when their user can't get at the project, such as a clone in root's own home. */
const SHARED_ROOM = '/var/lib/notebridge';
const NOTE = 'postgres-is-elsewhere.txt';

/**
 * The folder of the server that belongs to `dataRoot`, made when it isn't there: `dataRoot/postgres`, or, when root
 * runs this and the server's user can't get there, a folder under /var/lib/notebridge. A note in `dataRoot` then says
 * where, and is followed from then on, wherever the project is moved.
 */
export function findHome(dataRoot: string): PostgresHome {
  makeDataFolder(dataRoot);
  const folder = notedFolder(dataRoot) ?? path.join(dataRoot, 'postgres');
  const user = serverUser(path.join(folder, 'cluster', 'data'));
  if (user === null) return makeHome(folder, null);
  letThrough(dataRoot);
  if (existsSync(path.join(folder, 'cluster')) || canEnter(dataRoot, user)) return makeHome(folder, user);

  const mark = createHash('sha256').update(path.resolve(dataRoot)).digest('hex').slice(0, 16);
  const elsewhere = path.join(SHARED_ROOM, mark);
  mkdirSync(SHARED_ROOM, { recursive: true });
  chmodSync(SHARED_ROOM, 0o755);
  const home = makeHome(elsewhere, user);
  writeFileSync(
    path.join(dataRoot, NOTE),
    `${elsewhere}\n\nThe embedded PostgreSQL of this project keeps its data in the folder above: root started it, PostgreSQL\ndoes not run as root, and the user it runs as can't get into this one.\n`,
  );
  return home;
}

function notedFolder(dataRoot: string): string | null {
  const note = path.join(dataRoot, NOTE);
  if (!existsSync(note)) return null;
  const folder = readFileSync(note, 'utf8').split('\n')[0]?.trim() ?? '';
  return existsSync(folder) ? folder : null;
}

function makeHome(folder: string, user: ServerUser | null): PostgresHome {
  if (!existsSync(folder)) {
    mkdirSync(folder, { mode: 0o700 });
    if (user) chownSync(folder, user.uid, user.gid);
  }
  if (user === null) refuseForeign(folder);
  return { folder, user };
}

function refuseForeign(folder: string): void {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    throw new Error(
      `The embedded PostgreSQL in ${folder} was made by another user: run as that user or as root, or set DATA_DIR to a folder of your own.`,
    );
  }
}

/** The data folder itself must not be what keeps the server's user out; what lies in it has permissions of its own. */
function letThrough(folder: string): void {
  const { mode } = statSync(folder);
  if ((mode & 0o011) !== 0o011) chmodSync(folder, (mode & 0o777) | 0o011);
}
