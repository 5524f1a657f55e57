// Prints as JSON the packages whose modules the built console holds.
import path from 'node:path';
import { build } from 'vite';

const configFile = path.resolve(import.meta.dirname, '../../console/vite.config.mjs');
const built = await build({ configFile, logLevel: 'silent', build: { write: false } });
const modules = [built].flat().flatMap(({ output }) => output.flatMap(({ moduleIds = [] }) => moduleIds));
const names = modules.flatMap((file) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []);
console.log(JSON.stringify([...new Set(names)]));
