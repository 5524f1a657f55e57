// Compiles the client to ES modules with types, and packs it as an npm package into dist/. It carries what it depends on,
// so that it installs without a registry.
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { nodeModule, npm, quietly, root } from './processes.mjs';

const source = path.join(root, 'client');
const folder = path.join(root, 'dist/client-package');

/** openapi-fetch and its types. */
const BUNDLED = ['openapi-fetch', 'openapi-typescript-helpers'];

/** Resolves to the exit code and the output of the first program that fails, or of the last. */
async function packClient() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const compiler = [nodeModule('@typescript/native', 'tsc'), '--pretty', 'false', '-p', source];
  const compiled = await quietly(process.execPath, compiler);
  if (compiled.code !== 0) return compiled;
  for (const name of ['package.json', 'README.md', 'examples'])
    cpSync(path.join(source, name), path.join(folder, name), { recursive: true });
  for (const name of BUNDLED)
    cpSync(path.join(root, 'node_modules', name), path.join(folder, 'node_modules', name), { recursive: true });
  return npm('pack', folder, '--pack-destination', path.join(root, 'dist'), '--loglevel=error');
}

const { code, output } = await packClient();
console.log(output);
process.exitCode = code;
