// npm start: runs the built service. It never installs or builds, because it may run in production, where packages of
// development are missing on purpose.
import { existsSync } from 'node:fs';
import path from 'node:path';

const at = (...place) => path.resolve(import.meta.dirname, '..', ...place);
const main = at('dist/src/main.js');

function missing() {
  if (!existsSync(main)) return 'notebridge is not built: run npm ci && npm run build first.';
  if (!existsSync(at('node_modules'))) return 'The packages of notebridge are not installed: run npm ci first.';
  return undefined;
}

const reason = missing();
if (reason) {
  console.error(reason);
  process.exitCode = 1;
} else {
  if (existsSync(at('.env'))) process.loadEnvFile(at('.env')); // what is set already wins
  process.setSourceMapsEnabled(true);
  await import(main);
}
