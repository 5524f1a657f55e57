import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT } from '../../support/pages.js';

const script = (name: string) => pathToFileURL(path.join(ROOT, 'scripts', name)).href;
const MIGRATIONS = 'prisma/migrations';
const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-release-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (file: string, text: string) => {
  mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
  writeFileSync(path.join(folder, file), text);
};

/** Runs an expression on a module of scripts/ in a new process, because Jest loads no ES modules. */
function run(module: string, expression: string, env: NodeJS.ProcessEnv = {}) {
  const code = `const module = await import('${script(module)}'); console.log(JSON.stringify(await ${expression}))`;
  const args = ['--input-type=module', '-e', code, folder];
  const { stdout, stderr } = spawnSync(process.execPath, args, { env: { ...process.env, ...env }, encoding: 'utf8' });
  return { stderr, lines: stdout.trim().split('\n'), result: JSON.parse(stdout.trim().split('\n').at(-1) || 'null') };
}

describe('released migrations', () => {
  const changed = () => run('migration-checksums.mjs', 'module.findChangedMigrations(process.argv[1])').result;
  const recorded = () => run('migration-checksums.mjs', 'module.recordMigrations(process.argv[1])').result;
  beforeEach(() => {
    write(`${MIGRATIONS}/1_first/migration.sql`, 'CREATE TABLE a ();\n');
    write(`${MIGRATIONS}/checksums.json`, '{}');
  });

  it('are those that were recorded, which must not change', () => {
    expect(recorded()).toEqual(['1_first']);
    write(`${MIGRATIONS}/2_second/migration.sql`, 'CREATE TABLE b ();\n');
    expect(changed()).toEqual([]);
    appendFileSync(path.join(folder, MIGRATIONS, '1_first/migration.sql'), '-- more\n');
    const refusal = `${MIGRATIONS}/1_first/migration.sql was released, and is changed or gone. Restore it, and add a new migration.`;
    expect(changed()).toEqual([refusal]);
    expect(recorded()).toEqual(['2_second']); // and never a second time
    expect(changed()).toEqual([refusal]);
  });

  it('must not be removed', () => {
    recorded();
    rmSync(path.join(folder, MIGRATIONS, '1_first'), { recursive: true });
    expect(changed()).toEqual([expect.stringContaining('1_first/migration.sql was released')]);
  });
});

describe('npm run release', () => {
  const SECTIONS = '# Changelog\n\n## Unreleased\n\n## 2.0.0 — 2030-01-31\n\n- All.\n';
  const faults = (changed = '') =>
    run('release.mjs', `module.findReleaseFaults(process.argv[1], ${JSON.stringify(changed)})`).result;
  const sources = (changelog = SECTIONS, checksums = '{ "1_first": "" }') => {
    write('package.json', '{ "version": "2.0.0" }');
    write('CHANGELOG.md', changelog);
    write(`${MIGRATIONS}/1_first/migration.sql`, '');
    write(`${MIGRATIONS}/checksums.json`, checksums);
  };

  it('accepts a clean tree whose version is in the changelog', () => {
    sources();
    expect(faults()).toEqual([]);
  });

  it('refuses a tree with changes', () => {
    sources();
    expect(faults('?? file')).toEqual(['The working tree has changes; commit or remove them:\n?? file']);
  });

  it.each([
    ['a version without a section', SECTIONS.replace('2.0.0', '1.9.0'), 'has no section for 2.0.0'],
    ['entries under Unreleased', SECTIONS.replace('Unreleased\n', 'Unreleased\n\n- More.\n'), 'under Unreleased'],
  ])('refuses %s', (_, changelog, words) => {
    sources(changelog);
    expect(faults()).toEqual([expect.stringContaining(words)]);
  });

  it('refuses a migration without a checksum', () => {
    sources(SECTIONS, '{}');
    expect(faults()).toEqual([expect.stringContaining('No checksum is recorded for 1_first.')]);
  });

  describe('in a clean tree', () => {
    const git = (...args: string[]) =>
      execFileSync('git', ['-C', folder, '-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { encoding: 'utf8' });
    const shipped = (file: string) => !/node_modules|\.env$/.test(file);
    const archive = `notebridge-${version}.tgz`;
    const client = `notebridge-client-${version}.tgz`;

    beforeEach(() => {
      const copied = ['bin', 'client', 'console', 'docs', 'prisma', '.env.example', '.gitignore', 'README.md'];
      const built = ['dist/src', 'dist/console', `dist/${client}`];
      for (const name of [...copied, ...built, 'package.json', 'package-lock.json', 'CHANGELOG.md'])
        cpSync(path.join(ROOT, name), path.join(folder, name), { recursive: true, filter: shipped });
      // The clone's own may wait for a release.
      write('CHANGELOG.md', `# Changelog\n\n## Unreleased\n\n## ${version} — 2030-01-31\n`);
      run('migration-checksums.mjs', 'module.recordMigrations(process.argv[1])');
      git('init', '--quiet');
      git('add', '.');
      git('commit', '--quiet', '--message', 'All');
    });

    it('builds package, client and bill of materials, with their checksums', () => {
      const { lines, result, stderr } = run('release.mjs', `module.release(process.argv[1], ['--without-image'])`);
      const names = [`notebridge-${version}.cdx.json`, archive, client];
      expect([result, stderr]).toEqual([0, '']);
      expect(lines[0]).toBe(`notebridge ${version} (${git('rev-parse', 'HEAD').trim()}) in dist/release/:`);
      const target = path.join(folder, 'dist/release');
      const sums = execFileSync('sha256sum', ['--check', 'SHA256SUMS'], { cwd: target, encoding: 'utf8' });
      expect(sums).toBe(names.map((name) => `${name}: OK\n`).join(''));
      const files = execFileSync('tar', ['-tzf', archive], { cwd: target, encoding: 'utf8' }).trim().split('\n');
      const wanted = [
        'package.json',
        'npm-shrinkwrap.json',
        'bin/notebridge.js',
        'dist/src/main.js',
        'prisma/roles.sql',
      ];
      for (const file of [...wanted, 'dist/console/index.html', 'docs/compatibility.md'])
        expect(files).toContain(`package/${file}`);
      expect(files.filter((file) => /\.spec\.|\.made-from|simulator|harness|scripts\/|\.data/.test(file))).toEqual([]);
      execFileSync('tar', ['-xzf', archive, 'package/package.json', 'package/npm-shrinkwrap.json'], { cwd: target });
      const manifest = JSON.parse(readFileSync(path.join(target, 'package/package.json'), 'utf8'));
      const locked = JSON.parse(readFileSync(path.join(target, 'package/npm-shrinkwrap.json'), 'utf8'));
      expect(manifest).not.toHaveProperty('devDependencies');
      expect(locked.packages[''].dependencies).toEqual(manifest.dependencies);
      for (const name of Object.keys(manifest.overrides))
        expect(locked.packages[`node_modules/${name}`].version).toBe(manifest.overrides[name]);
      expect(git('status', '--porcelain')).toBe('');
    });

    it('exits with 3 if Docker is not available', () => {
      write('dist/path/docker', '#!/bin/sh\nexit 1\n');
      execFileSync('chmod', ['+x', path.join(folder, 'dist/path/docker')]);
      const PATH = `${path.join(folder, 'dist/path')}${path.delimiter}${process.env.PATH}`;
      const { result, stderr } = run('release.mjs', 'module.release(process.argv[1], [])', { PATH });
      expect(result).toBe(3);
      expect(stderr).toContain('The image is missing, because Docker is not available.');
    });

    it('builds the image of its commit, and saves it', () => {
      // Writes its arguments, and the file that `docker image save` would write.
      write('dist/path/docker', '#!/bin/sh\necho "$@" >> "$DOCKER_LOG"\n[ "$1" != image ] || echo image > "$4"\n');
      execFileSync('chmod', ['+x', path.join(folder, 'dist/path/docker')]);
      const PATH = `${path.join(folder, 'dist/path')}${path.delimiter}${process.env.PATH}`;
      const log = path.join(folder, 'dist/log');
      const { result, stderr } = run('release.mjs', 'module.release(process.argv[1], [])', { PATH, DOCKER_LOG: log });
      expect([result, stderr]).toEqual([0, '']);
      const file = path.join(folder, `dist/release/notebridge-${version}-image.tar`);
      expect(readFileSync(log, 'utf8').trim().split('\n')).toEqual([
        'version',
        `build --build-arg REVISION=${git('rev-parse', 'HEAD').trim()} --tag notebridge:${version} .`,
        `image save --output ${file} notebridge:${version}`,
      ]);
      expect(readFileSync(path.join(folder, 'dist/release/SHA256SUMS'), 'utf8')).toContain('-image.tar\n');
    });
  });
});
