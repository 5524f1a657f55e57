// Owns an embedded PostgreSQL until it reads "release". It replaces the service in tests that kill processes.
import { createRequire } from 'node:module';
import readline from 'node:readline';

const { startEmbeddedPostgres } = createRequire(import.meta.url)(
  '../../dist/demo/embedded-postgres/embedded-postgres.js',
);

const held = await startEmbeddedPostgres(process.argv[2]);
console.log(`held ${held.url} in ${held.home}`);
for await (const line of readline.createInterface({ input: process.stdin })) {
  if (line === 'release') break;
}
await held.release();
process.exit(0);
