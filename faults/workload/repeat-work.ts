import { setTimeout as delay } from 'node:timers/promises';
import { type Sent, WebhookSender } from '../../harness/webhook-sender.js';
import { WEBHOOK_SECRET, type World } from '../world.js';

const SECONDS = 20;
const REPEATS_PER_SECOND = 200;
/** Deliveries of other sessions, and of the session whose delivery is repeated. */
const OTHERS_PER_SECOND = 20;
const SAME_PER_SECOND = 2;

const MAX_MS = 1_000;

const SAME = 'repeated';
const ONE = JSON.stringify({ eventType: 'SESSION_CREATED', sessionId: SAME, providerUserId: 'p-1' });

/**
 * Repeats one delivery two hundred times a second, and checks that this delays no other one by a second: neither its
 * answer nor its processing. No process may be killed meanwhile.
 */
export async function underRepeats(world: World): Promise<void> {
  const seconds = world.sized(SECONDS, 5);
  const senderOf = () => new WebhookSender(() => WEBHOOK_SECRET, world.receivers, world.random);
  const [repeater, sender] = [senderOf(), senderOf()]; // each has a limit of requests in flight
  const timestamp = String(Date.now());
  const first = await repeater.deliver(ONE, timestamp);
  const [repeats, others, same] = await Promise.all([
    atRate(REPEATS_PER_SECOND, seconds, () => repeater.deliver(ONE, timestamp)),
    atRate(OTHERS_PER_SECOND, seconds, (at) => sender.deliver(eventOf(`other-${at}`))),
    atRate(SAME_PER_SECOND, seconds, () => sender.deliver(eventOf(SAME))),
  ]);
  repeater.close();
  sender.close();
  world.counts.deliveries += 1 + repeats.length + others.length + same.length;
  await world.reach('no delivery is left', async () => {
    return (await world.count('webhook_deliveries WHERE due_at IS NOT NULL')) === 0;
  });
  const { oracle } = world;
  await checkTimes(world, 'of other sessions', others);
  await checkTimes(world, 'of the same session', same);
  oracle.same(
    'every repeated delivery ends processed',
    await world.count("webhook_deliveries WHERE state <> 'processed'"),
    0,
  );
  const [row] = await world.rows<{ repeats: number }>(
    "SELECT repeats FROM webhook_deliveries WHERE encode(signature, 'hex') = $1",
    [first.signatures[0]],
  );
  const expected = repeats.filter(({ acknowledged, tries }) => acknowledged && tries === 1).length;
  oracle.same('each acknowledged repeat is counted', (row?.repeats ?? 0) >= expected, true);
}

async function checkTimes(world: World, which: string, sent: readonly Sent[]): Promise<void> {
  const rows = await world.rows<{ ms: number }>(
    `SELECT extract(epoch FROM processed_at - received_at)::float8 * 1000 AS ms
     FROM webhook_deliveries WHERE encode(signature, 'hex') = ANY($1)`,
    [sent.flatMap(({ signatures }) => signatures)],
  );
  const processed = Math.round(Math.max(...rows.map(({ ms }) => ms)));
  const answered = Math.round(Math.max(...sent.map(({ slowest }) => slowest)));
  world.setting.log(
    `${sent.length} deliveries ${which} under repeats: the slowest answer ${answered} ms, processed after at most ${processed} ms`,
  );
  const { oracle } = world;
  oracle.same(`deliveries ${which} that are stored under repeats`, rows.length, sent.length);
  oracle.atMost(`milliseconds until a delivery ${which} is answered under repeats`, answered, MAX_MS);
  oracle.atMost(`milliseconds until a delivery ${which} is processed under repeats`, processed, MAX_MS);
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
