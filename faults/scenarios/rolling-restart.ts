import type { Failure } from '../../harness/balancer.js';
import type { Scenario } from '../scenario.js';
import { DeliveryWork } from '../workload/delivery-work.js';
import { FeedWatch } from '../workload/feed-watch.js';
import { ImportWork } from '../workload/import-work.js';
import { PeopleWork } from '../workload/people-work.js';
import { SessionWork } from '../workload/session-work.js';
import type { World } from '../world.js';

const ROUNDS = 8;
/** Webhooks per second in the whole scenario. Few, because a receiver on a busy machine answers 503 without a restart. */
const PER_SECOND = 20;
/** Limit of user-management calls per minute: an import of one round takes about as long as its restarts. */
const CALLS = 600;

/** Restarts one process, and waits until the balancer sends requests to its replacement. */
interface Restart {
  readonly port: number;
  readonly at: number;
  readonly until: number;
}

/** True if a receiver answered 503 because a busy machine's database was late, which is not a fault of the restart. */
const isWithin = (failure: Failure, { port, at, until }: Restart): boolean =>
  failure.port === port && failure.at >= at && failure.at <= until;

/** Api processes behind a load balancer and workers are restarted in turn, and no caller notices. */
export const rollingRestart: Scenario = {
  name: 'restart',
  says: 'two api processes behind a load balancer and two workers restarted in turn during webhooks, people, sessions and an import',
  minutes: 4,
  wanted: {
    calls: CALLS,
    platform: { latencyMs: [0, 60] },
    without: ['getProcessingSession'],
    env: { SHUTDOWN_DELAY_SECONDS: '3' },
  },
  async run(world) {
    const { processes, oracle, counts } = world;
    const rounds = world.sized(ROUNDS);
    const balancer = await world.balance();
    const balanced = () =>
      world.reach('the balancer sends requests to all', () => processes.receivers.every(balancer.isReady));
    await processes.start('api', 'worker', 'api', 'worker');
    await balanced();
    const work = new ImportWork(world, { providers: 30 * rounds, clients: 40 * rounds, known: 10 });
    await work.begin();
    const sessions = new SessionWork(world, 100 * rounds);
    await sessions.begin();
    const feed = new FeedWatch(world);
    const people = new PeopleWork(world);
    const deliveries = new DeliveryWork(world, world.sized(PER_SECOND, 10));
    const restarts = Array.from({ length: rounds }, () => processes.ports).flat();
    const asked: Restart[] = [];
    for (const [place, port] of restarts.entries()) {
      await work.reaches((0.9 * (place + world.random.fraction())) / restarts.length);
      const at = performance.now();
      await processes.restart(port);
      await balanced();
      asked.push({ port, at, until: performance.now() });
      counts.faults += 1;
    }
    const sent = await deliveries.ended();
    await people.ended();
    await sessions.ended(feed);
    await work.ended(feed);
    await feed.ended();
    oracle.none(
      'no request is refused, cut or answered 5xx because of a restart',
      balancer.failures
        .filter((failure) => failure.what !== 503 || asked.some((restart) => isWithin(failure, restart)))
        .map(({ at, ...failure }) => ({
          ...failure,
          msAfterSignals: asked.flatMap((signal) => (signal.port === failure.port ? Math.round(at - signal.at) : [])),
        })),
    );
    oracle.none(
      'every webhook is acknowledged',
      sent.filter(({ acknowledged }) => !acknowledged).map(({ tries, slowest }) => [tries, Math.round(slowest)]),
    );
    await checkNothingRepeated(world);
  },
};

/** No process was killed, so each call got its answer: no call is retried, and no person needs a review. */
async function checkNothingRepeated(world: World): Promise<void> {
  const { oracle, simulator } = world;
  const { users, arrivals } = simulator.state;
  oracle.same('everyone is synced', await world.count("people WHERE state <> 'synced'"), 0);
  const creates = arrivals.list().filter(({ operation }) => /^create(Provider|Client)$/.test(operation));
  const created = users.list().filter(({ partnerUserId }) => partnerUserId);
  oracle.same('no one is created twice', creates.length, created.length);
}
