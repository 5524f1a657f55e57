export default async function teardown() {
  const { folder, stop } = globalThis.testServers;
  for (const stopServer of stop) await stopServer();
  const { clear } = await import('./support/leftovers.mjs');
  clear(folder);
}
