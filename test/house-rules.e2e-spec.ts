import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { usePrograms } from './support/programs.js';

const used = (imported: string) => `import { x } from '${imported}';\nexport const y = x;`;

/** [what is refused or allowed, the file it would stand in, the code, the rule that it breaks] */
const cases: [string, string, string, string | null][] = [
  ['a folder that imports from one below it', 'src/people/a.ts', used('../sessions/b.js'), 'no-restricted-imports'],
  ['a type from a folder below', 'src/config/a.ts', used('../database/b.js'), 'no-restricted-imports'],
  ['a folder that imports from one above it', 'src/people/a.ts', used('../platform/b.js'), null],
  ['a folder of a room importing a later one', 'src/people/store/a.ts', used('../api/b.js'), 'no-restricted-imports'],
  ['a folder of a room importing an earlier one', 'src/people/store/a.ts', used('../model/b.js'), null],
  ['a folder of a room importing a later room', 'src/people/api/a.ts', used('../../cli/b.js'), 'no-restricted-imports'],
  ['a folder of a room importing an earlier room', 'src/platform/contract/a.ts', used('../../http/b.js'), null],
  [
    'a folder of a folder importing a later one',
    'src/imports/parse/csv/a.ts',
    used('../fhir/b.js'),
    'no-restricted-imports',
  ],
  [
    'a folder importing the file beside it',
    'src/people/api/a.ts',
    used('../people.module.js'),
    'no-restricted-imports',
  ],
  ['axios outside platform/', 'src/people/a.ts', used('axios'), 'no-restricted-imports'],
  ['axios in platform/', 'src/platform/a.ts', used('axios'), null],
  ['bullmq in a service', 'src/people/a.service.ts', used('bullmq'), 'no-restricted-imports'],
  ['bullmq in a processor', 'src/people/a.processor.ts', used('bullmq'), null],
  ['ioredis at the root', 'src/a.ts', used('ioredis'), 'no-restricted-imports'],
  ['Prisma in a service', 'src/people/a.service.ts', used('../generated/prisma/client.js'), 'no-restricted-imports'],
  ['Prisma in a repository', 'src/people/a.repository.ts', used('../generated/prisma/client.js'), null],
  [
    'forwardRef',
    'src/people/a.ts',
    "import { forwardRef } from '@nestjs/common';\nforwardRef(() => 1);",
    'no-restricted-imports',
  ],
  ['the environment outside config/', 'src/people/a.ts', 'export const a = process.env.A;', 'no-restricted-properties'],
  ['the environment in config/', 'src/config/a.ts', 'export const a = process.env.A;', null],
  ['the simulator using the service', 'simulator/a.ts', used('../src/people/b.js'), 'no-restricted-imports'],
  ['the simulator using the wire types', 'simulator/a.ts', used('../src/platform/contract/wire-types.js'), null],
  ['the service using the simulator', 'src/platform/a.ts', used('../../simulator/b.js'), 'no-restricted-imports'],
  ['a barrel', 'src/people/index.ts', "export * from './b.js';", 'no-restricted-syntax'],
  ['a file called utils', 'src/people/utils.ts', 'export const a = 1;', 'no-restricted-syntax'],
  [
    'Prisma outside the transaction that a function is in',
    'src/people/a.repository.ts',
    'export class A { async a(tx: T) { await this.b(tx); await this.prisma.person.count(); } }',
    'no-restricted-syntax',
  ],
  [
    'Prisma outside the transaction that it begins',
    'src/people/a.repository.ts',
    'export const a = () => database.transaction(async (tx) => a(tx) ?? this.prisma.person.count());',
    'no-restricted-syntax',
  ],
  [
    'Prisma within a transaction',
    'src/people/a.repository.ts',
    'export class A { async a(tx: T) { await (await this.prisma.in(tx)).person.count(); } }',
    null,
  ],
  ['any', 'src/people/a.ts', 'export const a = (b: any) => b;', '@typescript-eslint/no-explicit-any'],
  ['printing in the service', 'src/people/a.ts', "console.log('a');", 'no-console'],
  ['printing in the CLI', 'src/cli/a.ts', "console.log('a');", null],
  ['301 lines', 'src/people/a.ts', 'export const a = 1;\n'.repeat(301), 'max-lines'],
];

const run = usePrograms();

describe('npm run check', () => {
  let broken: (string | null)[][];

  beforeAll(async () => {
    const snippets = JSON.stringify(cases.map(([, file, code]) => ({ file, code })));
    const lint = await run({ file: 'test/support/lint.mjs', args: [snippets] });
    broken = JSON.parse((await lint.printed(/^\[.*\]$/m))[0]);
  });

  it.each(cases.map(([what, , , rule], at) => ({ what, rule, at, verdict: rule ? 'refuses' : 'allows' })))(
    '$verdict $what',
    ({ rule, at }) => {
      expect([...new Set(broken[at])]).toEqual(rule ? [rule] : []);
    },
  );

  it('finds circular imports, and does not count types', async () => {
    const root = mkdtempSync(path.join(os.tmpdir(), 'notebridge-cycles-'));
    const write = (file: string, code: string) => writeFileSync(path.join(root, 'src', file), code);
    mkdirSync(path.join(root, 'src'));
    write('a.ts', used('./b.js'));
    write('b.ts', "import {\n  x,\n} from './c.js';");
    write('c.ts', "import './a.js';\nimport type { T } from './d.js';");
    write('d.ts', used('./c.js'));
    try {
      const program = await run({ file: 'test/support/find-cycles.mjs', args: [root] });
      expect(JSON.parse((await program.printed(/^\[.*\]$/m))[0])).toEqual([
        ['src/a.ts', 'src/b.ts', 'src/c.ts', 'src/a.ts'],
      ]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  it('lets no pattern that sees outside input take more than linear time', async () => {
    const root = mkdtempSync(path.join(os.tmpdir(), 'notebridge-patterns-'));
    mkdirSync(path.join(root, 'src'));
    const patterns = ['/^a+b*$/', '/\\s+$/', '/^(a|a)*$/', 'new RegExp(b)', "RegExp('a')"];
    const code = patterns.map((pattern, at) => `export const p${at} = ${pattern};`).join('\n');
    writeFileSync(path.join(root, 'src', 'a.ts'), `export const b = 'b';\n${code}`);
    try {
      const program = await run({ file: 'test/support/find-slow-patterns.mjs', args: [root] });
      const [faults] = await program.printed(/^\[.*\]$/m);
      expect(JSON.parse(faults)).toEqual([
        expect.stringMatching(/^src\/a\.ts:3 .*\(2nd degree polynomial/),
        expect.stringMatching(/^src\/a\.ts:4 .*\(exponential/),
        expect.stringMatching(/^src\/a\.ts:5 is put together/),
        expect.stringMatching(/^src\/a\.ts:6 is put together/),
      ]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});

describe('the modules of the architecture', () => {
  const foldersIn = (place: string) =>
    readdirSync(place, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name !== 'generated')
      .map(({ name }) => path.join(place, name));
  const rows = readFileSync('ARCHITECTURE.md', 'utf8').matchAll(/^\| `([a-z-]+)` +\| ([a-z, -]*)\|/gm);
  const modules = [...rows].map(([, name = '', folders = '']) => ({
    place: path.join('src', name),
    folders: folders.split(', ').flatMap((folder) => folder.trim() || []),
  }));

  it('are the folders of src', () => {
    expect(modules.map(({ place }) => place).sort()).toEqual(foldersIn('src').sort());
  });

  it.each(modules)('$place has the folders that stand there', ({ place, folders }) => {
    expect(foldersIn(place).sort()).toEqual(folders.map((folder) => path.join(place, folder)).sort());
  });
});

test('no folder of the source holds more than 14 files, but for what lies flat on purpose', () => {
  // Suites, benchmarks and scripts are programs beside each other; what they share lies beside them.
  const flat = ['bench', 'harness', 'scripts', 'test', 'test/support'];
  const counts: Record<string, number> = {};
  for (const root of [
    'bench',
    'console',
    'demo',
    'faults',
    'harness',
    'prisma',
    'scripts',
    'simulator',
    'src',
    'test',
  ]) {
    for (const { parentPath, name } of readdirSync(root, { withFileTypes: true, recursive: true })) {
      const isSource = /\.(ts|tsx|mjs|cjs|css|html)$/.test(name) && !/\.spec(-support)?\.tsx?$/.test(name);
      if (isSource && !/generated|node_modules/.test(parentPath)) counts[parentPath] = (counts[parentPath] ?? 0) + 1;
    }
  }
  const full = Object.entries(counts).flatMap(([place, count]) => (count > 14 ? place : []));
  expect(full.sort()).toEqual(flat);
});
