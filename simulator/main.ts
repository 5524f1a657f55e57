import { buildSimulator } from './app.js';
import { optionsFrom } from './options.js';

/** Starts the simulator from the environment and prints one line of JSON once it listens. */
async function main(): Promise<void> {
  const simulator = await buildSimulator(optionsFrom(process.env));
  console.log(JSON.stringify({ ready: true, url: simulator.url, seed: simulator.state.random.seed, pid: process.pid }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void simulator.close().then(() => process.exit(0)));
  }
}

main().catch((error: Error & { code?: string }) => {
  const toDo = '; stop what listens there, or set SIMULATOR_PORT to a free port.';
  console.error(error.code === 'EADDRINUSE' ? error.message + toDo : error.message);
  process.exit(1);
});
