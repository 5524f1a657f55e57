// Compiles the client to ES modules with types, and packs it as an npm package into dist/. It carries what it depends on,
// so that it installs without a registry.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const source = path.join(root, 'client');
const folder = path.join(root, 'dist/client-package');

/** openapi-fetch and its types. */
const BUNDLED = ['openapi-fetch', 'openapi-typescript-helpers'];

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
run('node', 'node_modules/@typescript/native/bin/tsc', '--pretty', 'false', '-p', source);
for (const name of ['package.json', 'README.md', 'examples'])
  cpSync(path.join(source, name), path.join(folder, name), { recursive: true });
for (const name of BUNDLED)
  cpSync(path.join(root, 'node_modules', name), path.join(folder, 'node_modules', name), { recursive: true });
run('npm', 'pack', folder, '--pack-destination', 'dist', '--loglevel=error');

function run(command, ...args) {
  execFileSync(command, args, { cwd: root, stdio: 'inherit' });
}
