import { readFaultRule } from '../../simulator/gate/fault-rule.js';
import type { Scenario } from '../scenario.js';
import { ComplianceWork } from '../workload/compliance-work.js';
import { FeedWatch } from '../workload/feed-watch.js';
import { ImportWork } from '../workload/import-work.js';
import { SessionWork } from '../workload/session-work.js';

const LOST = 500;
const KILLS = 30;
const CREATES = ['createProvider', 'createClient', 'createSession', 'submitComplianceJob'];
const SUBMISSIONS = 300;

/** Every way to lose the platform's answer to a create, and the answer to a lookup of a compliance job. */
const WAYS = [
  { kind: 'commit-then-cut', probability: 0.3 },
  { kind: 'commit-then-500', probability: 0.2 },
  { kind: 'bad-json', probability: 0.2 },
  { kind: 'commit-late', probability: 0.25, ms: 500 },
  { kind: 'slow', probability: 0.2, ms: 600 },
  { kind: 'rate-limit', probability: 0.05 },
  { kind: 'refuse', probability: 0.1 },
];

/** Loses answers to creates of people, sessions and compliance jobs while processes are killed. */
export const lostAnswers: Scenario = {
  name: 'answers',
  says: '500 lost answers to creates of people, sessions and compliance jobs, while processes are killed',
  minutes: 4,
  // Events are late, so that they cannot settle an unknown outcome early.
  wanted: { platform: { stepMs: 300, webhookDelayMs: [0, 4_000], complianceFailureRate: 0.2 } },
  async run(world) {
    const { processes, simulator, counts } = world;
    const { faults } = simulator.state;
    const creates = world.sized(LOST, 20);
    await processes.start('api,worker', 'api,worker');
    const feed = new FeedWatch(world);
    // About three of five creates lose their answer; those of people that had no effect are retried.
    const people = Math.ceil(creates * 2.2);
    const work = new ImportWork(world, { providers: Math.ceil(people / 2), clients: Math.ceil(people / 2), known: 0 });
    const sessions = new SessionWork(world, Math.ceil(creates * 1.1));
    const compliance = new ComplianceWork(world, world.sized(SUBMISSIONS, 20));
    await sessions.begin();
    await work.begin();
    compliance.begin();
    faults.order(
      [...CREATES, 'getComplianceJob'].flatMap((operation) => WAYS.map((way) => readFaultRule({ operation, ...way }))),
    );
    const kills = world.sized(KILLS);
    for (let kill = 0; kill < kills; kill += 1) {
      await sessions.reaches((kill + world.random.fraction()) / kills);
      await world.soon(400);
      await processes.killOne();
    }
    await sessions.reaches(1);
    await compliance.reaches(1);
    await work.reaches(0.9);
    faults.clear();
    await compliance.stop();
    const answers = simulator.state.arrivals.list().filter(({ operation }) => CREATES.includes(operation));
    counts.lostAnswers = answers.filter(({ status }) => status === 'cut' || (status ?? 0) >= 500).length;
    await sessions.ended(feed);
    await work.ended(feed);
    await compliance.ended(feed);
    await feed.ended();
  },
};
