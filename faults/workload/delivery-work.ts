import { setTimeout as delay } from 'node:timers/promises';
import { type Sent, WebhookSender } from '../../harness/webhook-sender.js';
import type { SessionEventType } from '../../src/platform/contract/wire-types.js';
import { WEBHOOK_SECRET, type World } from '../world.js';
import { checkSessions } from './session-checks.js';

/** The events of a session. In any order, its state is final once COMPLETED was received. */
const EVENTS: { eventType: SessionEventType; aiNotesEnabled: boolean | null }[] = [
  { eventType: 'SESSION_CREATED', aiNotesEnabled: null },
  { eventType: 'SESSION_PROCESSING_STARTED', aiNotesEnabled: false },
  { eventType: 'SESSION_PROCESSING_NOTES_COMPLETED', aiNotesEnabled: true },
  { eventType: 'SESSION_PROCESSING_COMPLETED', aiNotesEnabled: true },
];

/** Maximum distance between events of one session, which come in any order. */
const SPREAD = 200;

const LEFT = 'webhook_deliveries WHERE due_at IS NOT NULL';

interface KnownSession {
  id: string;
  state: string;
  notes: boolean;
  final: boolean;
  changes: number;
}

/** A stream of webhooks until it is stopped: four for each session, shuffled, some of them duplicated. */
export class DeliveryWork {
  /** The secret that signs webhooks from now on. */
  secret = WEBHOOK_SECRET;
  private stopping = false;
  private readonly sending: Promise<Sent>[] = [];
  private readonly running: Promise<void>;
  private readonly sender: WebhookSender;

  /** @param perSecond how many start per second */
  constructor(
    private readonly world: World,
    private readonly perSecond: number,
  ) {
    this.sender = new WebhookSender(() => this.secret, world.receivers, world.random);
    this.running = this.run();
  }

  /** Stops sending, waits until everything is handled, and checks the invariants. @returns the outcome of each webhook */
  async ended(): Promise<Sent[]> {
    this.stopping = true;
    await this.running;
    const sent = await Promise.all(this.sending);
    this.sender.close();
    const { world } = this;
    const { oracle } = world;
    await world.processes.up();
    const isEmpty = async () => (await world.count(LEFT)) === 0;
    await world.reach('no delivery is left', isEmpty);
    if (await this.replayDead()) await world.reach('no replayed delivery is left', isEmpty);
    const rows = await world.rows<{ s: string }>("SELECT encode(signature, 'hex') AS s FROM webhook_deliveries");
    const kept = new Set(rows.map(({ s }) => s));
    const acknowledged = sent.filter((one) => one.acknowledged);
    const retried = sent.filter(({ tries }) => tries > 1).length;
    world.counts.deliveries += sent.length;
    const slowest = Math.round(Math.max(...sent.map((one) => one.slowest)));
    world.setting.log(
      `${sent.length} webhooks, ${acknowledged.length} acknowledged, ${retried} sent again, the slowest answer ${slowest} ms`,
    );
    oracle.none(
      'every acknowledged webhook is in the inbox',
      acknowledged.map(({ signatures }) => signatures.at(-1) ?? '').filter((signature) => !kept.has(signature)),
    );
    oracle.same('every delivery ends processed', await world.count("webhook_deliveries WHERE state <> 'processed'"), 0);
    oracle.same('some webhooks were acknowledged', acknowledged.length > 0, true);
    await this.checkEvents(acknowledged);
    await checkSessions(world);
    return sent;
  }

  /** By chance, kills may hit the same delivery three times; an operator replays it. @returns true if any was dead */
  private async replayDead(): Promise<boolean> {
    const { ehr, oracle } = this.world;
    const dead = await this.world.count("webhook_deliveries WHERE state = 'dead'");
    oracle.atMost('deliveries hit by three kills', dead, 2);
    if (dead === 0) return false;
    const path = '/v1/webhook-deliveries/replay';
    const counted = await ehr.call<{ plan: object }>('POST', path, { body: { state: 'dead', dryRun: true } });
    await ehr.call('POST', path, { body: { state: 'dead', plan: counted?.body.plan } });
    return true;
  }

  private async checkEvents(acknowledged: Sent[]): Promise<void> {
    const rows = await this.world.rows<KnownSession>(
      `SELECT session_id AS id, event_state AS state, ai_notes_enabled AS notes, ai_notes_rank = 2 AS final,
              changes FROM sessions`,
    );
    const sessions = new Map(rows.map((row) => [row.id, row]));
    const received = new Map<string, Set<string>>();
    for (const { body } of acknowledged) {
      const { sessionId, eventType } = JSON.parse(body) as { sessionId: string; eventType: string };
      received.set(sessionId, (received.get(sessionId) ?? new Set()).add(eventType));
    }
    const wrong = [...received].filter(([id, types]) => {
      const row = sessions.get(id);
      if (!row || row.changes < types.size) return true;
      return types.size === EVENTS.length && !(row.state === 'Done' && row.notes && row.final);
    });
    this.world.oracle.none(
      'each session matches its acknowledged events',
      wrong.map(([id]) => id),
    );
  }

  private async run(): Promise<void> {
    const { random } = this.world;
    const begun = performance.now();
    let pool: string[] = [];
    for (let sent = 0; !this.stopping; sent += 1) {
      if (pool.length < SPREAD) pool = [...pool, ...bodiesFrom(sent + pool.length)];
      const [body] = pool.splice(random.below(SPREAD), 1) as [string];
      this.sending.push(this.sender.deliver(body));
      if (random.chance(0.025)) this.sending.push(this.sender.deliver(body)); // a duplicate, at any time
      const due = begun + (sent / this.perSecond) * 1_000;
      if (due > performance.now()) await delay(due - performance.now());
    }
  }
}

/** The webhook bodies of the next sessions. */
function bodiesFrom(place: number): string[] {
  const first = Math.floor(place / EVENTS.length);
  return Array.from({ length: SPREAD / EVENTS.length }, (_, at) =>
    EVENTS.map((event) => JSON.stringify({ ...event, sessionId: `s-${first + at}`, providerUserId: 'p-1' })),
  ).flat();
}
