import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const PROJECT = path.resolve(__dirname, '../..');

/** What the last stage of the Dockerfile comes to. */
export interface Image {
  /** The folder that stands for the root of its files. */
  readonly root: string;
  /** Its working folder, below the root. */
  readonly folder: string;
  /** What ENV sets. */
  readonly env: Record<string, string>;
  /** The program of CMD with its arguments. */
  readonly command: string[];
  /** The user of USER; undefined: root. */
  readonly user: string | undefined;
  remove(): void;
}

interface Stage {
  readonly name: string;
  readonly root: string;
  folder: string;
  readonly env: Record<string, string>;
  command: string[];
  user: string | undefined;
}

/**
 * Does what `docker build` would do with the Dockerfile, without containers: each stage is a folder, and RUN works there.
 * Where the outcome is the same, work is spared:
 *
 * - `npm ci` takes the packages from npm's cache, by their checksums, instead of the registry; one that leaves nothing
 *   out finds what the clone has installed by the same lockfile;
 * - `npm run build` finds what the clone has built, and makes again whatever was made of other files than it is given.
 *
 * @throws Error for an instruction that it does not know, or a command that fails
 */
export function buildImage(): Image {
  const home = mkdtempSync(path.join(tmpdir(), 'notebridge-image-'));
  // Another user will run it.
  chmodSync(home, 0o755);
  const stages: Stage[] = [];
  try {
    for (const { word, rest } of instructions()) follow(word, rest, stages, home);
  } catch (error) {
    rmSync(home, { recursive: true, force: true });
    throw error;
  }
  const last = current(stages);
  const folder = path.join(last.root, last.folder);
  return { ...last, folder, remove: () => rmSync(home, { recursive: true, force: true }) };
}

/** The instructions of the Dockerfile, each with what follows it. */
function instructions(): { word: string; rest: string }[] {
  const text = readFileSync(path.join(PROJECT, 'Dockerfile'), 'utf8').replaceAll(/\\\n/g, ' ');
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  return lines.map((line) => ({ word: line.split(' ', 1)[0] ?? '', rest: line.slice(line.indexOf(' ') + 1).trim() }));
}

const current = (stages: Stage[]): Stage => {
  const stage = stages.at(-1);
  if (!stage) throw new Error('The Dockerfile does something before its first FROM.');
  return stage;
};

function follow(word: string, rest: string, stages: Stage[], home: string): void {
  if (word === 'ARG' || word === 'EXPOSE') return;
  if (word === 'FROM') {
    const [, name = `stage-${stages.length}`] = / AS (\S+)$/.exec(rest) ?? [];
    const root = path.join(home, name);
    mkdirSync(root);
    stages.push({ name, root, folder: '/', env: {}, command: [], user: undefined });
    return;
  }
  const stage = current(stages);
  if (word === 'WORKDIR') {
    stage.folder = rest;
    mkdirSync(path.join(stage.root, rest), { recursive: true });
  } else if (word === 'ENV') {
    for (const [, name = '', value = ''] of rest.matchAll(/(\w+)=(\S+)/g)) stage.env[name] = value;
  } else if (word === 'COPY') copy(rest, stage, stages);
  else if (word === 'RUN') run(rest, stage);
  else if (word === 'CMD') stage.command = JSON.parse(rest) as string[];
  else if (word === 'USER') stage.user = rest;
  else throw new Error(`The Dockerfile says ${word}, which its test does not know how to do.`);
}

function copy(rest: string, stage: Stage, stages: Stage[]): void {
  const [, from, paths = ''] = /^(?:--from=(\S+) )?(.*)$/.exec(rest) ?? [];
  const sources = paths.split(' ');
  const target = sources.pop() ?? '';
  const base = from === undefined ? PROJECT : stages.find(({ name }) => name === from)?.root;
  if (base === undefined) throw new Error(`The Dockerfile copies from ${from}, which is no stage of it.`);
  const isKept = contextFilter();
  for (const source of sources) {
    const file = path.join(base, source);
    const to = path.resolve(path.join(stage.root, stage.folder), target);
    const isIntoFolder = target.endsWith('/') && !statSync(file).isDirectory();
    const place = isIntoFolder ? path.join(to, path.basename(file)) : to;
    mkdirSync(path.dirname(place), { recursive: true });
    if (from === undefined) cpSync(file, place, { recursive: true, verbatimSymlinks: true, filter: isKept });
    else copyAll(file, place);
  }
}

/** Whether a file of the project is sent to the build at all (`.dockerignore`). */
function contextFilter(): (file: string) => boolean {
  const patterns = readFileSync(path.join(PROJECT, '.dockerignore'), 'utf8').split('\n').filter(Boolean);
  const odd = patterns.find((pattern) => !/^[\w./*-]+$/.test(pattern) || pattern.includes('**'));
  if (odd !== undefined) throw new Error(`.dockerignore says ${odd}, which its test does not know how to do.`);
  const forms = patterns.map((each) => new RegExp(`^${each.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}(/|$)`));
  return (file) => !forms.some((form) => form.test(path.relative(PROJECT, file)));
}

function run(command: string, stage: Stage): void {
  const folder = path.join(stage.root, stage.folder);
  if (command === 'npm run build') offerBuilt(folder);
  if (!/^npm ci\b/.test(command)) execute(command, folder, stage.env);
  else if (!command.includes('--omit')) linkPackages(folder);
  else if (!installFromCache(command, folder, stage.env)) {
    linkPackages(folder);
    // By the same flags npm takes away what it would not have installed.
    execute(command.replace('npm ci', 'npm prune'), folder, stage.env);
  }
}

/** Runs a command as RUN does, but asks no registry. @throws Error with the last it printed when it fails */
function execute(command: string, folder: string, more: Record<string, string>): void {
  const { PATH, HOME, npm_config_cache: cache } = process.env;
  const npm = { npm_config_offline: 'true', ...(cache !== undefined && { npm_config_cache: cache }) };
  const env = { PATH, HOME, ...npm, ...more };
  const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', command], { cwd: folder, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ends with ${status}: ${(stdout + stderr).slice(-4_000)}`);
}

/**
 * Runs `npm ci` without a registry: npm finds in its cache, by its checksum, each package whose address it knows, and the
 * lockfile has no addresses.
 *
 * @returns whether all were in the cache
 */
function installFromCache(command: string, folder: string, env: Record<string, string>): boolean {
  const file = path.join(folder, 'package-lock.json');
  const locked = readFileSync(file, 'utf8');
  const lock = JSON.parse(locked) as { packages: Record<string, { version?: string; resolved?: string }> };
  for (const [place, entry] of Object.entries(lock.packages)) {
    const name = /.*node_modules\/(.*)$/.exec(place)?.[1];
    if (name) entry.resolved = `https://registry.npmjs.org/${name}/-/${path.basename(name)}-${entry.version}.tgz`;
  }
  writeFileSync(file, JSON.stringify(lock));
  try {
    execute(command, folder, env);
    return true;
  } catch (error) {
    if (!String(error).includes('ENOTCACHED')) throw error;
    rmSync(path.join(folder, 'node_modules'), { recursive: true, force: true });
    return false;
  } finally {
    writeFileSync(file, locked);
  }
}

/** Gives a stage what the clone has built, with the marks that say of which files. */
function offerBuilt(folder: string): void {
  for (const built of ['dist', 'src/generated']) copyAll(path.join(PROJECT, built), path.join(folder, built));
}

/** Gives a stage the installed packages with the mark of their lockfile, without what builds have left among them. */
function linkPackages(folder: string): void {
  const [from, to] = [path.join(PROJECT, 'node_modules'), path.join(folder, 'node_modules')];
  // Links need one file system, and a cp that makes them.
  if (spawnSync('cp', ['-al', from, to]).status !== 0) {
    rmSync(to, { recursive: true, force: true });
    copyAll(from, to);
  }
  for (const left of ['.vite-temp', '.cache', '.bin/notebridge'])
    rmSync(path.join(to, left), { recursive: true, force: true });
}

function copyAll(from: string, to: string): void {
  const { status, stderr } = spawnSync('cp', ['-a', from, to], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`cp -a ${from} ${to} ends with ${status}: ${stderr.slice(-1_000)}`);
}
