import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ROOT } from '../../support/pages.js';

const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
const CHANGELOG = `# Changelog\n\n## Unreleased\n\n## ${version} — 2030-01-31\n\n- All.\n`;

let folder: string;

const write = (file: string, text: string, mode = 0o644) => {
  mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
  writeFileSync(path.join(folder, file), text, { mode });
};

const git = (...args: string[]) =>
  execFileSync('git', ['-C', folder, '-c', 'user.name=t', '-c', 'user.email=t@t', ...args], {
    encoding: 'utf8',
  }).trim();

/** Runs it with a docker that is a script of the shell. */
function release(docker: string) {
  write('dist/path/docker', `#!/bin/sh\n${docker}\n`, 0o755);
  const PATH = `${path.join(folder, 'dist/path')}${path.delimiter}${process.env.PATH}`;
  const script = path.join(folder, 'scripts/release.mjs');
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], {
    env: { ...process.env, PATH },
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-release-'));
  const copied = ['bin', 'docs', 'prisma', 'scripts', '.env.example', '.gitignore', 'README.md'];
  const built = ['dist/src', 'dist/console', `dist/notebridge-client-${version}.tgz`];
  for (const name of [...copied, ...built, 'package.json', 'package-lock.json'])
    cpSync(path.join(ROOT, name), path.join(folder, name), { recursive: true });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  write('CHANGELOG.md', CHANGELOG);
  git('init', '--quiet');
  write('.git/info/exclude', 'node_modules\n');
  git('add', '.');
  git('commit', '--quiet', '--message', 'All');
});
afterEach(() => rmSync(folder, { recursive: true }));

it.each([
  ['a tree with changes', CHANGELOG, 'The working tree has changes; commit or remove them:\n?? file'],
  ['a version without a section', CHANGELOG.replace(version, '0.9.0'), `has no section for ${version}`],
  ['entries under Unreleased', CHANGELOG.replace('Unreleased\n', 'Unreleased\n\n- More.\n'), 'under Unreleased'],
])('npm run release refuses %s', (_, changelog, words) => {
  write('CHANGELOG.md', changelog);
  write('file', '');
  expect(release('exit 1')).toEqual({ status: 1, stdout: '', stderr: expect.stringContaining(words) });
});

it('npm run release builds package, client, bill of materials and image, with their checksums', () => {
  // Writes its arguments, and the file that `docker image save` would write.
  const log = path.join(folder, 'dist/log');
  const ended = release(`echo "$@" >> ${log}\n[ "$1" != image ] || echo image > "$4"`);
  expect(ended).toEqual({ status: 0, stdout: expect.stringContaining(git('rev-parse', 'HEAD')), stderr: '' });
  const [archive, image] = [`notebridge-${version}.tgz`, `notebridge-${version}-image.tar`];
  const target = path.join(folder, 'dist/release');
  const sums = execFileSync('sha256sum', ['--check', 'SHA256SUMS'], { cwd: target, encoding: 'utf8' });
  const names = [image, `notebridge-${version}.cdx.json`, archive, `notebridge-client-${version}.tgz`].sort();
  expect(sums).toBe(names.map((name) => `${name}: OK\n`).join(''));
  expect(readFileSync(log, 'utf8').trim().split('\n')).toEqual([
    'version',
    `build --build-arg REVISION=${git('rev-parse', 'HEAD')} --tag notebridge:${version} .`,
    `image save --output dist/release/${image} notebridge:${version}`,
  ]);

  execFileSync('tar', ['-xzf', archive], { cwd: target });
  const files = execFileSync('tar', ['-tzf', archive], { cwd: target, encoding: 'utf8' }).trim().split('\n');
  const wanted = ['npm-shrinkwrap.json', 'bin/notebridge.js', 'dist/src/main.js', 'dist/console/index.html'];
  for (const file of [...wanted, 'prisma/roles.sql', 'docs/compatibility.md'])
    expect(files).toContain(`package/${file}`);
  expect(files.filter((file) => /\.spec\.|simulator|harness|scripts\/|\.data/.test(file))).toEqual([]);
  const read = (file: string) => JSON.parse(readFileSync(path.join(target, 'package', file), 'utf8'));
  const [manifest, locked] = [read('package.json'), read('npm-shrinkwrap.json')];
  expect(manifest).not.toHaveProperty('devDependencies');
  expect(locked.packages[''].dependencies).toEqual(manifest.dependencies);
  for (const name of Object.keys(manifest.overrides))
    expect(locked.packages[`node_modules/${name}`].version).toBe(manifest.overrides[name]);
  expect(git('status', '--porcelain')).toBe('');
});

it('npm run release exits with 3 if Docker is not available', () => {
  const stderr = '✗ The image is missing, because Docker is not available.\n';
  expect(release('exit 1')).toEqual({ status: 3, stdout: expect.stringContaining('cdx.json'), stderr });
});
