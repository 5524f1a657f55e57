import { execFile, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT } from '../../support/pages.js';

const BUILDS = {
  prisma: 'src/generated/prisma/client.ts',
  metadata: 'src/generated/metadata.ts',
  service: 'dist/src/main.js',
  console: 'dist/console/index.html',
  client: 'dist/client-package/package.json',
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-setup-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (file: string, text: string) => {
  mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
  writeFileSync(path.join(folder, file), text);
};

/** A clone whose packages are installed and whose build steps only write their outputs. */
function makeClone(engines = '>=20') {
  cpSync(path.join(ROOT, 'scripts'), path.join(folder, 'scripts'), { recursive: true });
  const scripts = Object.entries(BUILDS).map(([name, output]) => [
    `build:${name}`,
    `mkdir -p ${path.dirname(output)} && echo > ${output} && ! cat broken-${name}`,
  ]);
  write('package.json', JSON.stringify({ engines: { node: engines }, scripts: Object.fromEntries(scripts) }));
  const packages = { 'node_modules/pg': { version: '1.0.0' }, 'node_modules/of-another-system': { optional: true } };
  write('package-lock.json', JSON.stringify({ packages: { '': {}, ...packages } }));
  write('bin/notebridge.js', '// the command');
  write('node_modules/.bin/tsc', '');
  write('node_modules/.package-lock.json', JSON.stringify({ packages: { 'node_modules/pg': { version: '1.0.0' } } }));
  for (const name of ['client', 'src', 'simulator', 'demo', 'bench', 'harness', 'faults', 'console'])
    write(`${name}/a.ts`, '');
  for (const file of [
    '.swcrc',
    'nest-cli.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'prisma/schema.prisma',
    'prisma.config.ts',
  ])
    write(file, '');
}

/** What the script says, without the seconds. */
function setUp(): { status: number | null; said: string[] } {
  const { status, stderr } = spawnSync(process.execPath, [path.join(folder, 'scripts/setup.mjs')], {
    encoding: 'utf8',
  });
  return {
    status,
    said: stderr
      .trim()
      .replaceAll(/ \d+\.\d s$/gm, '')
      .split('\n')
      .filter(Boolean),
  };
}

test('npm run setup builds only what is missing or older than its sources', () => {
  makeClone();
  const all = ['Generating the database client …', 'Describing the API …', 'Compiling …', 'Building the console …'];
  expect(setUp()).toEqual({ status: 0, said: [...all, 'Packing the client …'] });
  expect(readFileSync(path.join(folder, 'node_modules/.bin/notebridge'), 'utf8')).toBe('// the command');
  expect(setUp()).toEqual({ status: 0, said: [] });
  write('harness/a.ts', '// changed');
  expect(setUp().said).toEqual(['Compiling …']);
  rmSync(path.join(folder, 'console/a.ts'));
  expect(setUp().said).toEqual(['Building the console …']);
  rmSync(path.join(folder, 'dist/client-package'), { recursive: true });
  expect(setUp().said).toEqual(['Packing the client …']);
  write('prisma/schema.prisma', '// changed');
  expect(setUp().said).toEqual(['Generating the database client …', 'Compiling …']);
});

test('npm run setup shows the output of a step that fails, and repeats it the next time', () => {
  makeClone();
  write('broken-service', `${[...Array(40).keys()].map((line) => `line ${line}`).join('\n')}\nlast line\n`);
  const { status, said } = setUp();
  expect([status, said[3], said.length, said.at(-1)]).toEqual([
    1,
    '✗ npm run build:service failed:',
    3 + 1 + 30,
    'last line',
  ]);
  rmSync(path.join(folder, 'broken-service'));
  expect(setUp().said).toEqual(['Compiling …', 'Building the console …', 'Packing the client …']);
});

test('npm run setup refuses a Node that is too old', () => {
  makeClone('>=99.1.0');
  const said = [`✗ Node ${process.versions.node} is too old: install Node 99.1.0 or later.`];
  expect(setUp()).toEqual({ status: 1, said });
});

test('only one command at a time sets up a clone, and one that was killed does not hold up the next', async () => {
  const lock = path.join(folder, 'lock');
  const module = pathToFileURL(path.join(ROOT, 'scripts/take-turn.mjs')).href;
  const withLock = (work: string) =>
    new Promise<string>((resolve) => {
      const code = `import fs from 'node:fs'; import { takeTurn } from '${module}';
        takeTurn('${lock}', () => { ${work}; console.log('done') })`;
      execFile(process.execPath, ['--input-type=module', '-e', code], (_error, output) => resolve(output));
    });
  await withLock(`process.kill(process.pid, 'SIGKILL')`);
  expect(existsSync(lock)).toBe(true);
  // A second process would find the folder of the first.
  const alone = `fs.mkdirSync('${folder}/busy');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50); fs.rmdirSync('${folder}/busy')`;
  expect(await Promise.all([1, 2, 3].map(() => withLock(alone)))).toEqual(['done\n', 'done\n', 'done\n']);
  expect(existsSync(lock)).toBe(false);
});
