import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { usePrograms } from './support/programs.js';

const ROOT = path.resolve(__dirname, '..');
const run = usePrograms();
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');

async function ask<Answer>(what: string, root = ROOT): Promise<Answer> {
  const program = await run({ file: 'test/support/supply-chain.mjs', args: [what, root] });
  expect([await program.ended(), program.output()]).toEqual([0, expect.any(String)]);
  return JSON.parse(program.output()) as Answer;
}

it('no package runs anything while it is installed, wherever that is written', () => {
  expect(read('.npmrc')).toMatch(/^ignore-scripts=true$/m);
  const installs = [...read('Dockerfile').matchAll(/npm ci.*/g), ...read('scripts/setup.mjs').matchAll(/'ci',[^\]]*/g)];
  expect(installs.map(([line]) => line.includes('--ignore-scripts'))).toEqual([true, true, true]);
  const { allowScripts } = JSON.parse(read('package.json')) as { allowScripts: Record<string, boolean> };
  expect(Object.values(allowScripts)).not.toContain(true);
});

it('a licence that nobody allowed is found, and stricter in production', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-licences-'));
  const packages = {
    '': { name: 'x' },
    'node_modules/fine': { version: '1.0.0', license: '(MIT OR GPL-3.0)' },
    'node_modules/two': { version: '1.0.0', license: 'MIT AND SSPL-1.0' },
    'node_modules/silent': { version: '1.0.0' },
    'node_modules/a/node_modules/@b/tool': { version: '2.0.0', license: 'EPL-2.0', dev: true },
    'node_modules/@b/tool': { version: '2.0.0', license: 'EPL-2.0' },
    'node_modules/elsewhere': { version: '1.0.0', optional: true },
  };
  writeFileSync(path.join(folder, 'package-lock.json'), JSON.stringify({ packages }));
  expect(await ask('licences', folder)).toEqual([
    'two 1.0.0 has the licence MIT AND SSPL-1.0, which is not allowed for production',
    'silent 1.0.0 has the licence (none named), which is not allowed for production',
    '@b/tool 2.0.0 has the licence EPL-2.0, which is not allowed for production',
  ]);
  rmSync(folder, { recursive: true });
});

interface Bill {
  bomFormat: string;
  components: { 'bom-ref': string; name: string; version: string; purl: string }[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

interface Manifest {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
}

/** Every package that Node finds from the dependencies of this project on, as `name@version`. */
function reachable(): Set<string> {
  const found = new Set<string>();
  const visit = (from: string, names: string[]) => {
    for (const name of names) {
      const places = createRequire(path.join(from, 'x.js')).resolve.paths(name) ?? [];
      const home = places
        .map((place) => path.join(place, name))
        .find((place) => existsSync(path.join(place, 'package.json')));
      if (!home) continue;
      const manifest = JSON.parse(readFileSync(path.join(home, 'package.json'), 'utf8')) as Manifest;
      const id = `${manifest.name}@${manifest.version}`;
      if (found.has(id)) continue;
      found.add(id);
      visit(home, Object.keys(manifest.dependencies ?? {}));
    }
  };
  visit(ROOT, Object.keys((JSON.parse(read('package.json')) as Manifest).dependencies ?? {}));
  return found;
}

it('the bill of materials names every package that production loads, and says the same each time', async () => {
  const bill = await ask<Bill>('sbom');
  expect(bill).toEqual(await ask('sbom'));
  expect(bill.bomFormat).toBe('CycloneDX');
  const named = new Set(bill.components.map(({ name, version }) => `${name}@${version}`));
  expect(
    named.has(`@nestjs/core@${(JSON.parse(read('package.json')) as Manifest).dependencies?.['@nestjs/core']}`),
  ).toBe(true);
  expect([...reachable()].filter((id) => !named.has(id))).toEqual([]);
  const references = new Set(bill.dependencies.map(({ ref }) => ref));
  expect(references.size).toBe(bill.components.length + 1);
  for (const { dependsOn } of bill.dependencies) for (const each of dependsOn) expect(references).toContain(each);
});

it('the bill of materials names every package that the pages of the console hold', async () => {
  const program = await run({ file: 'test/support/bundled-packages.mjs', env: { NODE_ENV: 'production' } });
  expect([await program.ended(), program.output()]).toEqual([0, expect.stringContaining('react-dom')]);
  const named = new Set((await ask<Bill>('sbom')).components.map(({ name }) => name));
  expect((JSON.parse(program.output()) as string[]).filter((name) => !named.has(name))).toEqual([]);
});

describe('advisories', () => {
  let registry: Server;
  let answer: { status: number; body: object };

  beforeAll(async () => {
    registry = createServer((request, response) => {
      const { status, body } = request.method === 'POST' ? answer : { status: 404, body: {} };
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    }).listen(0, '127.0.0.1');
    await once(registry, 'listening');
  });
  afterAll(() => registry.close());

  const audited = async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-npm-'));
    const { port } = registry.address() as AddressInfo;
    const env = {
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_cache: folder,
      npm_config_fetch_retries: '0',
    };
    const program = await run({ file: 'scripts/run.mjs', args: ['audit'], env });
    const code = await program.ended();
    rmSync(folder, { recursive: true, force: true });
    return { code, output: program.output() };
  };
  const advisory = (severity: string) => ({
    fastify: [{ id: 1, url: 'https://advisories.example/1', title: 'It leaks', severity, vulnerable_versions: '*' }],
  });

  it.each([
    ['are left out where the registry has none', 405, {}, 0, /left out, the registry does not answer/],
    ['that are not grave are counted', 200, advisory('moderate'), 0, /✓ advisories: 0 grave, [1-9]/],
    ['that are grave are named and fail', 200, advisory('high'), 1, /✗ fastify .*: high, It leaks \(https/],
  ])('%s', async (_what, status, body, expected, sentence) => {
    answer = { status, body };
    const { code, output } = await audited();
    expect([code, output]).toEqual([expected, expect.stringMatching(sentence)]);
  });
});
