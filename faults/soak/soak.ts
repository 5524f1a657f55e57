import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import type { Scenario } from '../scenario.js';
import { FeedWatch } from '../workload/feed-watch.js';
import { ImportWork } from '../workload/import-work.js';
import { PeopleWork } from '../workload/people-work.js';
import { PushWork } from '../workload/push-work.js';
import { SessionWork } from '../workload/session-work.js';
import type { World } from '../world.js';
import { AppSessions } from './app-sessions.js';
import { ForgedWebhooks } from './forged-webhooks.js';
import { Meter, oldestDue } from './meter.js';
import {
  ASKED_SHARE,
  CLIENTS,
  LOOK_EVERY_MS,
  PERSON_EVERY_MS,
  PROVIDERS,
  REIMPORT_EVERY_MINUTES,
  SESSION_EVERY_MS,
} from './practice.js';
import { Reimports } from './reimports.js';
import { header, line, type Row } from './row.js';
import { Shift } from './shift.js';
import { judge } from './trends.js';
import { Troubles } from './troubles.js';

const MINUTE_MS = 60_000;
const DAY_MINUTES = 480;

/** Intervals of a long run. A short run shortens them, so that each occurs at least `MIN_TIMES` times. */
const MIN_TIMES = 4;
const ROW_EVERY_MINUTES = 5;
const KILL_EVERY_MINUTES = 3;
const TROUBLE_EVERY_MINUTES = 2;
const MISBEHAVE_EVERY_MINUTES = 10;
const LOOK_AT_PROCESSES_MS = 5_000;
const FORGE_EVERY_MS = 3_000;

/** In the first part of the run any process may be killed; then one of each role lives to the end. */
const SHARE_WITHOUT_ELDERS = 1 / 3;
const ELDERS = 2;

/** Due work that has waited longer holds new sessions back, because a machine that is too busy would never catch up. */
const MAX_WAITED_SECONDS = 120;

/** Notes that the EHR reads at the same time; with more, the EHR would be the bottleneck. */
const READING_AT_ONCE = 30;
const LISTS = ['sessions?limit=50', 'clients?limit=50', 'sessions?state=Error', 'overview', 'webhook-deliveries'];

/** Characters of the output of each process that are kept, to show why it ended. */
const KEPT_OUTPUT = 100_000;

/** @param table is given each line of the table */
export function soak(minutes: number, table: (line: string) => void): Scenario {
  return {
    name: 'soak',
    says: `${minutes} minutes of the busiest practice, with kills and a failing platform`,
    minutes,
    wanted: {
      calls: 300,
      platform: {
        latencyMs: [20, 400],
        stepMs: 2_000,
        webhookDelayMs: [0, 500],
        webhookShuffleMs: 1_000,
        webhookDuplicateRate: 0.05,
        webhookRetryBaseMs: 1_000,
        sessionFailureRate: 0.01,
        regenerationFailureRate: 0.1,
      },
      keeps: KEPT_OUTPUT,
      direct: true,
    },
    run: (world) => new Soak(world, minutes, table).run(),
  };
}

class Soak {
  private readonly shift = new Shift();
  private readonly rows: Row[] = [];
  private readonly begun = performance.now();
  private reading = 0;
  private looks = 0;
  private held = 0;

  constructor(
    private readonly world: World,
    private readonly minutes: number,
    private readonly table: (line: string) => void,
  ) {}

  async run(): Promise<void> {
    const { world, shift } = this;
    const { processes } = world;
    const balancer = await world.balance();
    await processes.start('api', 'worker', 'api', 'worker');
    await world.reach('the balancer sends to all', () => processes.receivers.every(balancer.isReady));

    const people = { providers: this.part(PROVIDERS, 10), clients: this.part(CLIENTS, 40), known: this.part(40, 2) };
    const imported = new ImportWork(world, people);
    const askEveryMs = SESSION_EVERY_MS / ASKED_SHARE;
    const sessions = new SessionWork(world, Math.ceil((this.minutes * MINUTE_MS) / askEveryMs), askEveryMs);
    const app = new AppSessions(world);
    const forged = new ForgedWebhooks(world);
    const feed: FeedWatch = new FeedWatch(world, (event) => this.hear(event, meter));
    const meter: Meter = new Meter(
      world,
      () => feed.events,
      () => this.held,
    );
    const push = new PushWork(world, (body) =>
      meter.push.add(since((JSON.parse(body) as { timestamp: string }).timestamp)),
    );
    const reimports = new Reimports(world, imported);

    await sessions.begin();
    await push.begin();
    await reimports.begin();
    const live = new PeopleWork(world, PERSON_EVERY_MS);
    const troubles = new Troubles(world, shift, this.every(TROUBLE_EVERY_MINUTES));
    const everyMs = SESSION_EVERY_MS / (1 - ASKED_SHARE);
    shift.repeat(
      () => 2 * everyMs * world.random.fraction(),
      () => {
        if (meter.waited <= MAX_WAITED_SECONDS) app.begin();
        else this.held += 1;
      },
    );
    shift.repeat(
      () => LOOK_EVERY_MS,
      () => this.lookAtLists(),
    );
    shift.repeat(
      () => FORGE_EVERY_MS,
      () => forged.send(),
    );
    shift.repeat(
      () => this.every(REIMPORT_EVERY_MINUTES),
      () => reimports.again(),
    );
    shift.repeat(
      () => this.every(TROUBLE_EVERY_MINUTES),
      () => troubles.next(),
    );
    shift.repeat(
      () => this.every(MISBEHAVE_EVERY_MINUTES),
      () => push.misbehave(),
    );
    shift.repeat(
      () => this.every(KILL_EVERY_MINUTES) * (0.5 + world.random.fraction()),
      () => this.kill(),
    );
    shift.repeat(
      () => LOOK_AT_PROCESSES_MS,
      () => meter.look(),
    );
    this.table(header());
    shift.repeat(
      () => this.every(ROW_EVERY_MINUTES),
      () => this.measure(meter),
    );
    await shift.rest(this.minutes * MINUTE_MS);

    world.setting.log('The time is over: what is left is waited for.');
    sessions.stop();
    await shift.over();
    troubles.heal();
    if (meter.secondsOfRow > this.every(ROW_EVERY_MINUTES) / 2_000) await this.measure(meter);
    const underWork = [...this.rows];
    await sessions.ended(feed);
    await live.ended();
    await imported.ended(feed);
    await reimports.ended();
    await push.ended();
    await feed.ended();
    await app.check(feed.subjectsOf('session.created'));
    await forged.check();
    world.oracle.same(
      'every webhook was handled',
      await world.count("webhook_deliveries WHERE state <> 'processed'"),
      0,
    );
    await world.reach('nothing is due', async () => (await oldestDue(world)) === 0);
    await this.measure(meter);
    judge(underWork, world.oracle);
  }

  /** Takes an event as the EHR does: notes are read as soon as the feed tells of them. */
  private hear({ at, type, data }: FeedEventResponse, meter: Meter): void {
    meter.feed.add(since(at));
    const { sessionId } = data as { sessionId?: string };
    if (type !== 'session.notes-ready' || !sessionId) return;
    const waited = meter.sinceNotes(sessionId);
    if (waited !== undefined) meter.notes.add(waited);
    if (this.reading >= READING_AT_ONCE || this.shift.isOver) return;
    this.reading += 1;
    void this.world.ehr.call('GET', `/v1/sessions/${sessionId}/notes`, {}, { tries: 3 }).finally(() => {
      this.reading -= 1;
    });
  }

  private lookAtLists(): Promise<unknown> {
    this.looks += 1;
    return this.world.ehr.call('GET', `/v1/${LISTS[this.looks % LISTS.length]}`, {}, { tries: 3 });
  }

  private async kill(): Promise<void> {
    const { processes } = this.world;
    const isEarly = performance.now() - this.begun < this.minutes * MINUTE_MS * SHARE_WITHOUT_ELDERS;
    await processes.killOne(isEarly ? [] : processes.ports.slice(0, ELDERS));
  }

  private async measure(meter: Meter): Promise<void> {
    const row = await meter.row();
    this.rows.push(row);
    this.table(line(row));
  }

  /** Milliseconds of an interval that a long run has every `minutes`. */
  private every(minutes: number): number {
    return Math.min(minutes, this.minutes / MIN_TIMES) * MINUTE_MS;
  }

  /** The part of an eight-hour run that fits into this one. */
  private part(whole: number, least: number): number {
    return Math.max(least, Math.round((whole * this.minutes) / DAY_MINUTES));
  }
}

const since = (at: Date | string): number => Math.max(0, Date.now() - new Date(at).getTime());
