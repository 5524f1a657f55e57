import { setTimeout as delay } from 'node:timers/promises';
import { type Sent, WebhookSender } from '../../harness/webhook-sender.js';
import { WEBHOOK_SECRET, type World } from '../world.js';

/** Seconds without repeats, and then with them. */
const SECONDS = 20;
const REPEATS_PER_SECOND = 200;
/** Deliveries of other sessions, and of the session whose delivery is repeated. */
const OTHERS_PER_SECOND = 20;
const SAME_PER_SECOND = 2;

/** By how much repeats may delay another delivery. */
const MAX_DELAY_MS = 1_000;

const SAME = 'repeated';
const REPEATED = JSON.stringify({ eventType: 'SESSION_CREATED', sessionId: SAME, providerUserId: 'p-1' });

/** Milliseconds of the slowest delivery. */
interface Slowest {
  answered: number;
  processed: number;
}

/**
 * Repeats one delivery two hundred times a second. Neither the answer to another one nor its processing may be a second
 * later than without repeats, because a busy machine is slow in both cases. No process may be killed meanwhile.
 */
export async function underRepeats(world: World): Promise<void> {
  const seconds = world.sized(SECONDS, 5);
  const { oracle } = world;
  const without = await slowestOthers(world, seconds, 'without repeats');
  const timestamp = String(Date.now());
  const repeater = senderTo(world);
  const repeating = atRate(REPEATS_PER_SECOND, seconds, () => repeater.deliver(REPEATED, timestamp));
  const under = await slowestOthers(world, seconds, 'under repeats', repeating);
  repeater.close();
  for (const whose of ['other sessions', 'the same session'] as const) {
    for (const what of ['answered', 'processed'] as const) {
      const late = under[whose][what] - without[whose][what];
      oracle.atMost(`milliseconds by which repeats delay that a delivery of ${whose} is ${what}`, late, MAX_DELAY_MS);
    }
  }
  const repeats = await repeating;
  const acknowledged = repeats.filter((each) => each.acknowledged && each.tries === 1).length;
  const [row] = await world.rows<{ repeats: number }>(
    "SELECT repeats FROM webhook_deliveries WHERE encode(signature, 'hex') = $1",
    [repeats[0]?.signatures[0]],
  );
  oracle.same('each acknowledged repeat is counted', (row?.repeats ?? 0) >= acknowledged - 1, true);
  oracle.same('deliveries end processed', await world.count("webhook_deliveries WHERE state <> 'processed'"), 0);
}

const senderTo = (world: World) => new WebhookSender(() => WEBHOOK_SECRET, world.receivers, world.random);

/** Sends deliveries that are not repeated, and waits until everything is processed. */
async function slowestOthers(
  world: World,
  seconds: number,
  when: string,
  meanwhile: Promise<readonly Sent[]> = Promise.resolve([]),
) {
  const sender = senderTo(world);
  const [repeats, others, same] = await Promise.all([
    meanwhile,
    atRate(OTHERS_PER_SECOND, seconds, (at) => sender.deliver(eventOf(`${when} ${at}`.replaceAll(' ', '-')))),
    atRate(SAME_PER_SECOND, seconds, () => sender.deliver(eventOf(SAME))),
  ]);
  sender.close();
  world.counts.deliveries += repeats.length + others.length + same.length;
  await world.reach('no delivery is left', async () => {
    return (await world.count('webhook_deliveries WHERE due_at IS NOT NULL')) === 0;
  });
  const slowest = {
    'other sessions': await slowestOf(world, others),
    'the same session': await slowestOf(world, same),
  };
  for (const [whose, { answered, processed }] of Object.entries(slowest)) {
    world.setting.log(
      `${when}, each delivery of ${whose} is answered in ${answered} ms and processed after ${processed} ms`,
    );
  }
  return slowest;
}

async function slowestOf(world: World, sent: readonly Sent[]): Promise<Slowest> {
  const rows = await world.rows<{ ms: number }>(
    `SELECT extract(epoch FROM processed_at - received_at)::float8 * 1000 AS ms
     FROM webhook_deliveries WHERE encode(signature, 'hex') = ANY($1)`,
    [sent.map(({ signatures }) => signatures.at(-1))],
  );
  world.oracle.same('deliveries beside repeats that are stored', rows.length, sent.length);
  return {
    answered: Math.round(Math.max(...sent.map((each) => each.slowest))),
    processed: Math.round(Math.max(...rows.map(({ ms }) => ms))),
  };
}

const eventOf = (sessionId: string): string =>
  JSON.stringify({ eventType: 'SESSION_PROCESSING_STARTED', sessionId, providerUserId: 'p-1', aiNotesEnabled: false });

/** Begins as many per second, without waiting for their ends. */
async function atRate(perSecond: number, seconds: number, send: (at: number) => Promise<Sent>): Promise<Sent[]> {
  const begun = performance.now();
  const sending: Promise<Sent>[] = [];
  for (let at = 0; at < perSecond * seconds; at += 1) {
    await delay(Math.max(0, begun + (at * 1_000) / perSecond - performance.now()));
    sending.push(send(at));
  }
  return Promise.all(sending);
}
