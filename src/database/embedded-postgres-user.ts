import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';

/** Whom the server runs as when root starts it: PostgreSQL refuses to run as root. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The server's user: null for whoever isn't root (the server is then theirs); for root the owner of the data that
 * is already there, else the machine's `postgres` user, else `nobody`.
 */
export function serverUser(existingData: string): ServerUser | null {
  if (process.getuid?.() !== 0) return null;
  const data = statSync(existingData, { throwIfNoEntry: false });
  if (data && data.uid !== 0) return { uid: data.uid, gid: data.gid };
  const accounts = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = accounts.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error('PostgreSQL does not run as root and there is no user postgres or nobody: set DATABASE_URL.');
}

const READ_AND_RUN = 0o5;
const ENTER = 0o1;

/** Whether `user` may get to `place` and read and run it (a program) or list it (a folder). */
export function canReach(place: string, user: ServerUser): boolean {
  return allows(place, user, READ_AND_RUN) && canEnter(path.dirname(place), user);
}

/** Whether `user` may pass through `folder` and every folder above it. */
export function canEnter(folder: string, user: ServerUser): boolean {
  const at = path.resolve(folder);
  const above = path.dirname(at);
  return allows(at, user, ENTER) && (above === at || canEnter(above, user));
}

function allows(place: string, user: ServerUser, bits: number): boolean {
  const found = statSync(place, { throwIfNoEntry: false });
  if (!found) return false;
  const shift = found.uid === user.uid ? 6 : found.gid === user.gid ? 3 : 0;
  return ((found.mode >> shift) & bits) === bits;
}
