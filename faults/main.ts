import { availableParallelism, loadavg } from 'node:os';
import { findRedisServer } from '../harness/redis-server.js';
import { leaveNothingBehind } from './interrupt.js';
import { readOptions, replayCommand, USAGE } from './options.js';
import { inLanes, type PlannedRun, planRuns } from './plan.js';
import { type Outcome, runScenario } from './run-scenario.js';
import type { Scenario } from './scenario.js';
import { clockSkew } from './scenarios/clock-skew.js';
import { floods } from './scenarios/floods.js';
import { hostileRequests } from './scenarios/hostile-requests.js';
import { importKills } from './scenarios/import-kills.js';
import { lostAnswers } from './scenarios/lost-answers.js';
import { platformFaults } from './scenarios/platform-faults.js';
import { postgresFaults } from './scenarios/postgres-faults.js';
import { privacy } from './scenarios/privacy.js';
import { pushes } from './scenarios/pushes.js';
import { queryPlans } from './scenarios/query-plans.js';
import { receiverKills } from './scenarios/receiver-kills.js';
import { redisFaults } from './scenarios/redis-faults.js';
import { rollingRestart } from './scenarios/rolling-restart.js';
import { rotation } from './scenarios/rotation.js';
import { runStores } from './stores/stores.js';
import { table } from './table.js';

/** The scenarios of `npm run faults`; `npm run faults -- --only import` runs only that one. */
const SCENARIOS: readonly Scenario[] = [
  importKills,
  receiverKills,
  lostAnswers,
  postgresFaults,
  redisFaults,
  clockSkew,
  platformFaults,
  rotation,
  pushes,
  hostileRequests,
  floods,
  rollingRestart,
  queryPlans,
  privacy,
];

async function main(words: string[]): Promise<void> {
  if (words.includes('--help')) {
    console.log(
      [USAGE, ...SCENARIOS.map(({ name, says, minutes }) => `  ${name}: ${says} (${minutes} min)`)].join('\n'),
    );
    return;
  }
  if (words[0] === '--stores') {
    const log = (line: string) => console.log(line);
    const isGood = await runStores(words[1], { seed: 1, log, onOpen: leaveNothingBehind });
    process.exitCode = isGood ? 0 : 1;
    return;
  }
  const names = SCENARIOS.map(({ name }) => name);
  const options = readOptions(words, names, Math.floor(Math.random() * 1e9));
  const redisServer = findRedisServer();
  const plan = planRuns(SCENARIOS, options, redisServer !== undefined);
  // Durations say little on a busy machine, so the output shows its load.
  const load = loadavg()[0]?.toFixed(1);
  console.log(
    `${availableParallelism()} CPUs, load ${load} before the start, Node ${process.version}, seed ${options.seed}`,
  );
  if (!redisServer)
    console.log('No redis-server is on the PATH: all queues run on PostgreSQL, and the scenario redis is skipped.');
  const replayOf = ({ scenario, share, queue }: PlannedRun) => replayCommand(scenario.name, options.seed, share, queue);
  const done: { run: PlannedRun; outcome: Outcome }[] = [];
  await inLanes(plan, options.atOnce, async (run) => {
    const { scenario, queue, ...rest } = run;
    const log = (line: string) => console.log(options.atOnce > 1 ? `${scenario.name}: ${line}` : `  ${line}`);
    console.log(`\n${scenario.name}: ${scenario.says} (share ${run.share}, queues on ${queue})`);
    const outcome = await runScenario(scenario, {
      ...rest,
      log,
      ...(queue === 'redis' && { redisServer }),
      onOpen: leaveNothingBehind,
    });
    done.push({ run, outcome });
    for (const invariant of outcome.broken) log(`✗ ${invariant}`);
    log(outcome.broken.length === 0 ? '✓ all invariants hold' : `Replay: ${replayOf(run)}`);
  });
  console.log(`\n${table(done)}`);
  const failed = done.filter(({ outcome }) => outcome.broken.length > 0);
  for (const { run } of failed) console.log(`Replay: ${replayOf(run)}`);
  console.log(`${done.length - failed.length} passed, ${failed.length} failed`);
  if (failed.length > 0) process.exitCode = 1;
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
