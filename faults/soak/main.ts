import { availableParallelism, loadavg } from 'node:os';
import { findRedisServer } from '../../harness/redis-server.js';
import { leaveNothingBehind } from '../interrupt.js';
import { runScenario } from '../run-scenario.js';
import { readOptions, replayCommand, USAGE } from './options.js';
import { soak } from './soak.js';

async function main(words: string[]): Promise<number> {
  if (words.includes('--help')) {
    console.log(USAGE);
    return 0;
  }
  const found = findRedisServer();
  const chosen = { seed: Math.floor(Math.random() * 1e9), queue: found ? 'redis' : 'postgres' } as const;
  const options = readOptions(words, chosen);
  if (options.queue === 'redis' && !found) throw new Error('No redis-server is on the PATH. Use --queue postgres.');
  const load = loadavg()[0]?.toFixed(1);
  console.log(`${availableParallelism()} CPUs, load ${load} before the start, Node ${process.version}`);
  console.log(replayCommand(options));
  const rows: string[] = [];
  const table = (row: string) => {
    rows.push(row);
    console.log(row);
  };
  const { counts, broken, seconds } = await runScenario(soak(options.minutes, table), {
    seed: options.seed,
    share: 1,
    log: (line) => console.log(line),
    ...(options.queue === 'redis' && found && { redisServer: found }),
    onOpen: leaveNothingBehind,
  });
  console.log(
    `\n${rows.join('\n')}\n\n${JSON.stringify(counts)}, ${Math.round(seconds)} s, load ${loadavg()[0]?.toFixed(1)}`,
  );
  for (const law of broken) console.log(`✗ ${law}`);
  console.log(broken.length === 0 ? '✓ every law holds' : `Replay: ${replayCommand(options)}`);
  return broken.length === 0 ? 0 : 1;
}

main(process.argv.slice(2))
  .catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    return 1;
  })
  // Work that a broken run left behind would keep the process running.
  .then((code) => process.exit(code));
