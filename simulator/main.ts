import { buildSimulator } from './app.js';
import { optionsFrom } from './options.js';
import { startFault } from './start-fault.js';

/** Starts the simulator from the environment and prints one line of JSON once it listens. */
async function main(): Promise<void> {
  const simulator = await buildSimulator(optionsFrom(process.env));
  console.log(JSON.stringify({ ready: true, url: simulator.url, seed: simulator.state.random.seed, pid: process.pid }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void simulator.close().then(() => process.exit(0)));
  }
}

main().catch((error: Error) => {
  console.error(startFault(error));
  process.exit(1);
});
