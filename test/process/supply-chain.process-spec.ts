import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const script = (name: string) => pathToFileURL(path.resolve('scripts', name)).href;

/** Runs a module's code in a new process, because Jest loads no ES modules. */
function run(code: string, env: NodeJS.ProcessEnv = {}): Promise<{ exitCode: number; output: string }> {
  return new Promise((resolve) => {
    const args = ['--input-type=module', '-e', code];
    const child = execFile(process.execPath, args, { env: { ...process.env, ...env } }, (_error, output) =>
      resolve({ exitCode: child.exitCode ?? -1, output }),
    );
  });
}

describe('npm run audit', () => {
  const advisory = (severity: string) => [
    { id: 1, url: 'https://advisories.example.org/1', title: 'Bad', severity, vulnerable_versions: '*' },
  ];

  it.each([
    ['exits with 2 if the registry refuses to answer', undefined, 2, 'unknown'],
    ['exits with 2 if the registry knows no advisory for any package', {}, 2, 'unknown'],
    ['exits with 0 if the registry knows only those of others', { minimist: advisory('critical') }, 0, '0 grave'],
    ['exits with 1 for a grave one', { minimist: advisory('critical'), pg: advisory('high') }, 1, 'pg'],
  ])('%s', async (_, advisories, exitCode, words) => {
    const registry = createServer(({ method, url = '' }, response) => {
      const name = decodeURIComponent(url.slice(1));
      response.writeHead(advisories ? 200 : 405, { 'content-type': 'application/json' });
      response.end(JSON.stringify(method === 'POST' ? (advisories ?? {}) : { name, versions: {} }));
    }).listen(0, '127.0.0.1');
    await once(registry, 'listening');
    const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;
    const env = { npm_config_registry: url, npm_config_fetch_retries: '0' };
    const ended = await run(`process.exitCode = await (await import('${script('audit.mjs')}')).audit()`, env);
    registry.close();
    expect(ended).toEqual({ exitCode, output: expect.stringContaining(words) });
  });
});

test.each([
  ['without a checksum', { version: '1.0.0' }, 'has no integrity'],
  ['with a weak checksum', { version: '1.0.0', integrity: 'sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=' }, 'has no integrity'],
  ['from another place', { version: '1.0.0', resolved: 'git+ssh://git@example.org/a.git' }, 'does not come from'],
])('npm run check refuses a package %s', async (_, locked, words) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-lock-'));
  const packages = { '': {}, 'node_modules/a': locked };
  writeFileSync(path.join(folder, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages }));
  const code = `console.log((await import('${script('check-packages.mjs')}')).findPackageFaults('${folder}').join())`;
  const { output } = await run(code);
  rmSync(folder, { recursive: true });
  expect(output).toContain(`a 1.0.0 ${words}`);
});

test('the setup lock of a killed process goes to the next one, and only to one at a time', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-setup-'));
  const withLock = (work: string) =>
    run(
      `(await import('${script('setup-lock.mjs')}')).withSetupLock('${folder}/lock', async () => { ${work}; console.log('done') })`,
    );
  await withLock(`process.kill(process.pid, 'SIGKILL')`);
  expect(existsSync(`${folder}/lock`)).toBe(true);
  // A second process would find the folder of the first.
  const alone = `const fs = await import('node:fs'); fs.mkdirSync('${folder}/busy');
    await new Promise((resolve) => setTimeout(resolve, 50)); fs.rmdirSync('${folder}/busy')`;
  const ended = await Promise.all([1, 2, 3].map(() => withLock(alone)));
  expect(ended.map(({ output }) => output)).toEqual(['done\n', 'done\n', 'done\n']);
  expect(existsSync(`${folder}/lock`)).toBe(false);
  rmSync(folder, { recursive: true });
});
