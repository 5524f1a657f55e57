import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

export default async function teardown() {
  await require('../dist/harness/world/worlds.js').closeWorlds(); // those of this process, where Jest has no workers
  const { folder, stop } = globalThis.testServers;
  for (const stopServer of stop) await stopServer();
  const { clear } = await import('./support/leftovers.mjs');
  clear(folder);
}
