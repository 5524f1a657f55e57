import { setTimeout as delay } from 'node:timers/promises';
import type { SimulatedSession } from '../../simulator/sessions/session.js';
import type { World } from '../world.js';
import type { FeedWatch } from './feed-watch.js';
import { checkFetchedSessions } from './session-checks.js';

/** Requests in flight at the same time. */
const CONCURRENCY = 6;
const TEMPLATE = '11111111-1111-4111-8111-111111111111';

interface KeptRequest {
  appointment: string;
  /** The id of the row that an event created first, or of the request's row. */
  row: string;
  state: string;
  body: Buffer | null;
  platformId: string | null;
}

/** Session requests of the EHR, each with an Idempotency-Key; notes come by webhooks and lookups. */
export class SessionWork {
  private readonly appointments: string[];
  private readonly waiting: string[];
  private asked = 0;
  private asking: Promise<unknown> = Promise.resolve();

  /** @param everyMs between the beginnings of two requests; 0 by default */
  constructor(
    private readonly world: World,
    count: number,
    private readonly everyMs = 0,
  ) {
    this.appointments = Array.from({ length: count }, (_, at) => `visit-${at}`);
    this.waiting = [...this.appointments];
  }

  /** Creates a provider, and starts to send requests. @param key returns the API key for each request */
  async begin(key?: () => string): Promise<void> {
    const { ehr } = this.world;
    const body = { email: 'pia@example.org', firstName: 'Pia', lastName: 'Ruiz' };
    await this.world.reach('the provider is synced', async () => {
      const answer = await ehr.call<{ sync: { state: string } }>('PUT', '/v1/providers/therapist', { body, wait: 20 });
      return answer?.body.sync.state === 'synced';
    });
    this.world.deliverWebhooks();
    this.asking = Promise.all(Array.from({ length: CONCURRENCY }, () => this.ask(key)));
  }

  /** Requests no more sessions. */
  stop(): void {
    this.waiting.length = 0;
  }

  /** Waits until this share of the requests is answered. */
  async reaches(share: number): Promise<void> {
    const enough = Math.floor(share * this.appointments.length);
    await this.world.reach(`${enough} requests were answered`, () => this.asked >= enough);
  }

  /** Waits until every session has ended, and checks the invariants. No fault may be left, and all processes must run. */
  async ended(feed: FeedWatch): Promise<void> {
    const { world } = this;
    const { sessions, deliveries, timers } = world.simulator.state;
    await this.asking;
    await world.processes.up();
    await world.reach('no request is in flight', async () => {
      return (await world.count("sessions WHERE state = 'Requested'")) === 0;
    });
    await world.reach('the platform has done all delayed work', () => timers.count === 0);
    await world.reach('every session has ended', () => sessions.list().every(({ nextStep }) => !nextStep));
    await this.hearEverything();
    world.counts.deliveries += deliveries.list().length;
    await this.checkNotes();
    await feed.readToEnd();
    await this.checkRequests(feed);
    await checkFetchedSessions(world);
  }

  private async ask(key?: () => string): Promise<void> {
    const { ehr, random } = this.world;
    for (let appointment = this.waiting.shift(); appointment; appointment = this.waiting.shift()) {
      const body = {
        provider: 'therapist',
        noteTemplateIds: [TEMPLATE],
        input: { text: { text: `Notes of ${appointment}.` } },
        partnerAppointmentId: appointment,
      };
      // Some callers give up after their first attempt.
      const tries = random.chance(0.2) ? 1 : undefined;
      const options = { body, wait: random.below(3), idempotencyKey: appointment, key: key?.() };
      await ehr.call('POST', '/v1/sessions', options, { tries });
      this.asked += 1;
      if (this.everyMs) await delay(this.everyMs * CONCURRENCY * 2 * random.fraction());
    }
  }

  /** Redelivers webhooks that the platform gave up while no receiver was up. */
  private async hearEverything(): Promise<void> {
    const { deliveries } = this.world.simulator.state;
    await this.world.reach('the platform has delivered everything', async () => {
      await deliveries.settled();
      if (deliveries.redeliver('failed') === 0) return true;
      await delay(500);
      return false;
    });
    await this.world.reach('no delivery is left', async () => {
      return (await this.world.count('webhook_deliveries WHERE due_at IS NOT NULL')) === 0;
    });
  }

  private async checkRequests(feed: FeedWatch): Promise<void> {
    const { oracle, simulator } = this.world;
    const kept = await this.world.rows<KeptRequest>(
      `SELECT correlation_id AS appointment, id AS row, request AS body, session_id AS "platformId",
         CASE WHEN session_id IS NULL THEN state ELSE 'Settled' END AS state
       FROM sessions WHERE requested_at IS NOT NULL AND alias_of IS NULL`,
    );
    const made = new Map<string, string[]>(this.appointments.map((appointment) => [appointment, []]));
    for (const { partnerAppointmentId, sessionId } of simulator.state.sessions.list()) {
      made.get(partnerAppointmentId ?? '')?.push(sessionId);
    }
    const of = (appointment: string) => made.get(appointment) ?? [];
    oracle.none(
      'no request creates two sessions',
      [...made].filter(([, sessions]) => sessions.length > 1),
    );
    oracle.same('a request is stored once', new Set(kept.map(({ appointment }) => appointment)).size, kept.length);
    const settled = kept.filter(({ state }) => state === 'Settled');
    const others = kept.filter(({ state }) => state !== 'Settled');
    oracle.none(
      'a settled request has exactly one session, and no text',
      settled.filter(({ appointment, platformId, body }) => `${of(appointment)}` !== platformId || body !== null),
    );
    // Every event arrived and names the appointment, so a created session would have settled its request.
    oracle.none(
      'a request that is not settled is unknown, has its text, and created no session',
      others
        .filter(({ appointment, state, body }) => state !== 'Unknown' || body === null || of(appointment).length > 0)
        .map(({ appointment, state }) => [appointment, state]),
    );
    const known = new Set(kept.map(({ appointment }) => appointment));
    oracle.none(
      'a request that was not stored was not sent',
      this.appointments.filter((appointment) => !known.has(appointment) && of(appointment).length > 0),
    );
    oracle.same('some requests are settled', settled.length > 0, true);
    this.world.setting.log(
      `${this.appointments.length} requests for a session: ${settled.length} settled, ${others.length} unknown, ` +
        `${this.appointments.length - kept.length} never stored`,
    );
    const created = feed.subjectsOf('session.created');
    oracle.none(
      'the feed has every session, under the id of its first row',
      settled.filter(({ row }) => !created.has(`sessions/${row}`)).map(({ appointment }) => appointment),
    );
  }

  /** Reads notes as the EHR does, and waits for sessions that are not done yet. */
  private async checkNotes(): Promise<void> {
    const { sessions } = this.world.simulator.state;
    const done = sessions
      .list()
      .filter(({ state }) => state === 'Done')
      .values();
    await Promise.all(
      Array.from({ length: CONCURRENCY }, async () => {
        for (const session of done) await this.checkNotesOf(session);
      }),
    );
  }

  private async checkNotesOf({ sessionId, generation }: SimulatedSession): Promise<void> {
    const { ehr } = this.world;
    await this.world.reach('a finished session is shown as Done, with its last notes', async () => {
      const session = await ehr.call<{ state: string }>('GET', `/v1/sessions/${sessionId}`);
      const notes = await ehr.call<{ documents?: unknown[] }>('GET', `/v1/sessions/${sessionId}/notes`);
      const isLast = JSON.stringify(notes?.body.documents ?? []).includes(`(Generation ${generation}.)`);
      return session?.body.state === 'Done' && isLast;
    });
  }
}
