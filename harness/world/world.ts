import { setTimeout as delay } from 'node:timers/promises';
import type { Type } from '@nestjs/common';
import type { Settings } from '../../simulator/settings.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import { until } from '../until.js';
import { ApiDescription } from './api-description.js';
import { FOREVER_MS, Platform, type Rule } from './platform.js';
import { type Answer, type CallOptions, request } from './request.js';
import { forgetEarlierTests, RunningWork, storeCounts } from './running-work.js';
import { ADMIN_KEY, settingsFor, WEBHOOK_SECRET } from './settings.js';
import { msOf, type Span, timeSql, WorldClock, WorldRandom } from './time.js';
import type { Work } from './work.js';
import { copyTemplate, type WorldDatabase } from './world-database.js';
import { type ServiceParts, startService, type Variables, type WorldService } from './world-service.js';

/** Milliseconds between two heartbeats of the service. */
const BEAT_MS = 2_000;

/** Milliseconds that pass before each request and each round of work, so that cause and effect differ in time. */
const STEP_MS = 1;

/** Longest pause, in milliseconds, that `settle` waits out: debounces and the limiter of calls. */
const SHORT_MS = 500;

/** Rounds after which `settle` gives up. */
const MAX_ROUNDS = 10_000;

/** How often to look for jobs while a test waits for an answer, in real milliseconds. */
const POLL_INTERVAL_MS = 5;
/** Looks without a job after which due rows are added, as the feeder would. */
const MAX_QUIET_CHECKS = 40;

/** Passes between two tests. Longer than every pause that a process keeps in memory. */
const BETWEEN_TESTS: Span = '1 h';

export interface WorldOptions {
  /** Settings of the service besides the usual ones; undefined removes one. */
  readonly settings?: Variables;
  /** Settings of the platform simulator. */
  readonly platform?: Partial<Settings>;
}

/** A call that the platform holds, and the work that waits for it. */
interface Held {
  /** Answers every held call. @returns once the world has settled */
  answer(): Promise<void>;
  /** Resolves when the work has ended, successfully or not. */
  readonly ended: Promise<void>;
}

/**
 * The service, PostgreSQL, HTTP and the platform simulator in one process. Background work runs only in `settle` and its
 * kin, and time moves only in `advance`, for the database, the service and the simulator together.
 */
export class World {
  private service!: WorldService;
  private readonly random = new WorldRandom();
  private readonly parts: ServiceParts;
  private isAltered = false;
  private moving: Promise<unknown> = Promise.resolve();
  private lastBeatMs = 0;
  private readonly others: WorldService[] = [];
  private readonly running = new RunningWork();

  private constructor(
    readonly platform: Platform,
    readonly database: WorldDatabase,
    private readonly clock: WorldClock,
    private readonly settings: Variables,
  ) {
    this.parts = { clock, random: this.random, step: () => this.move(STEP_MS) };
  }

  /**
   * @param server URL of PostgreSQL
   * @param template name of a database with the world's time and every migration
   */
  static async start(server: string, template: string, { settings = {}, platform = {} }: WorldOptions): Promise<World> {
    const clock = new WorldClock();
    const database = await copyTemplate(server, template);
    const simulator = await Platform.start(clock, { webhookSecret: WEBHOOK_SECRET, ...platform });
    const usual = settingsFor(simulator.url, database.url);
    const world = new World(simulator, database, clock, { ...usual, ...settings });
    await world.serve();
    return world;
  }

  /** The service's background work, by kind. */
  get work(): Work {
    return this.service.work;
  }

  get url(): string {
    return this.service.url;
  }

  get app(): WorldService['app'] {
    return this.service.app;
  }

  /** A provider of the service's dependency injection. */
  get<T>(type: Type<T>): T {
    return this.app.get(type, { strict: false });
  }

  now(): Date {
    return this.clock.now();
  }

  /** Sends one request to the service, and checks its answer against the API's description. */
  async call<Body = PersonResponse>(method: string, path: string, options: CallOptions = {}): Promise<Answer<Body>> {
    await this.move(STEP_MS);
    const answering = request<Body>(`${this.url}${path}`, method, { ...options, key: options.key ?? ADMIN_KEY });
    const answer = await (options.wait ? this.workWhile(answering) : answering);
    (await ApiDescription.of(this.app)).check(method, path, answer);
    return answer;
  }

  /** Runs one statement. @returns its rows */
  async sql<Row = Record<string, unknown>>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.database.pool.query(text, values)).rows as Row[];
  }

  /** Polls until work that a test started in this process has an effect, such as bytes on a connection; never for time. */
  eventually<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
    return until(what, look);
  }

  /** Resolves when the platform has received more than `before` calls, of an operation or of any. */
  untilCalled(operation?: string, before = 0): Promise<boolean> {
    return this.eventually(
      `${operation ?? 'the platform'} is called`,
      () => this.platform.arrivals(operation) > before,
    );
  }

  /** Works until the platform holds a matching call. @param cause of the call, if work left running may make it at once */
  async untilHeld(rule: Rule, cause?: () => Promise<void>): Promise<Held> {
    const before = this.platform.arrivals(rule.operation);
    this.platform.hold(rule);
    await cause?.();
    const ended = this.settle();
    this.running.detach(ended);
    await this.untilCalled(rule.operation, before);
    return {
      ended,
      answer: async () => {
        this.platform.release();
        await ended;
        await this.settle();
      },
    };
  }

  /**
   * Works until nothing is due and the platform has sent its webhooks. Pauses of up to half a second pass automatically.
   * While the platform holds a call, the work that made it waits.
   *
   * @throws Error listing the latest statements if the work never ends
   */
  async settle(maxRounds = MAX_ROUNDS): Promise<void> {
    await this.platform.webhooksSent();
    for (let rounds = 0; rounds < maxRounds; rounds += 1) {
      // Work that another caller began may change something after the rounds of the feeder, and before it is looked for.
      const before = this.service.changes.count;
      // Jobs come first. Without any, the feeder adds due rows.
      const isSoon = await this.awaitNext();
      const nextInMs = isSoon ? 0 : await this.service.feed();
      const isQuiet = await this.workOnJobs();
      if (isSoon || !isQuiet || (await this.isOtherWorkRunning()) || this.service.changes.count !== before) continue;
      // Jobs that change nothing, such as those of a paused import, come again. Linking causes no work, so it comes last.
      if (nextInMs <= 0 || nextInMs > SHORT_MS) return this.work.links();
      await this.move(Math.ceil(nextInMs));
    }
    throw new Error(`The world never settles. Latest changes:\n${this.service.changes.latest.join('\n')}`);
  }

  /** Does background work until `answer` settles. */
  async workWhile<T>(answer: Promise<T>): Promise<T> {
    let isOver = false;
    const over = answer.then(
      () => undefined,
      () => undefined,
    );
    void over.then(() => {
      isOver = true;
    });
    for (let quietChecks = 0; ; quietChecks += 1) {
      await Promise.race([over, delay(POLL_INTERVAL_MS)]);
      if (isOver) return answer;
      const isSoon = await this.awaitNext();
      if (isSoon) quietChecks = 0;
      if (isSoon) await Promise.race([over, this.running.detach(this.workOnJobs())]);
      else if (quietChecks === MAX_QUIET_CHECKS) await Promise.race([over, this.running.detach(this.settle())]);
    }
  }

  /** Moves time for the service, the platform and the database, then sends a heartbeat. */
  async advance(span: Span): Promise<void> {
    await this.move(msOf(span));
    if (this.lastBeatMs !== this.clock.monotonicMs()) await this.beat();
  }

  /** Shuts the service down and starts it again. Changed settings last until the test ends. */
  async restart(settings: Variables = {}): Promise<void> {
    await this.service.app.close();
    this.isAltered = Object.keys(settings).length > 0;
    await this.serve(settings);
  }

  /** Starts a second process on the same database until the test ends. The test calls its work and heartbeats. */
  async startAnother(settings: Variables = {}): Promise<WorldService> {
    const service = await startService({ ...this.settings, ...settings }, this.parts);
    this.others.push(service);
    return service;
  }

  /** Wipes the store of the queues, as FLUSHALL does. */
  forgetJobs(): void {
    this.service.store.wipe();
  }

  /** Empties the database and the platform, and lets everything that a process remembers expire. */
  async reset(): Promise<void> {
    this.platform.release();
    await this.platform.webhooksSent();
    await this.running.detachedEnded();
    for (const { app } of this.others.splice(0)) await app.close();
    await storeCounts(this.service.app);
    await this.database.empty(); // also of keys that a test used, without which no process starts
    if (this.isAltered) await this.restart().then(() => this.database.empty());
    this.platform.simulator.state.reset();
    this.random.restart();
    this.service.store.wipe();
    forgetEarlierTests(this.service.app);
    this.registerWebhook();
    await this.advance(BETWEEN_TESTS);
  }

  async close(): Promise<void> {
    this.platform.release();
    for (const { app } of this.others) await app.close();
    await this.service.app.close();
    await this.platform.close();
    await this.database.drop();
  }

  private async serve(settings: Variables = {}): Promise<void> {
    this.service = await startService({ ...this.settings, ...settings }, this.parts);
    this.lastBeatMs = this.clock.monotonicMs();
    this.registerWebhook();
  }

  private registerWebhook(): void {
    this.platform.set({ webhookUrl: `${this.url}/webhooks/platform` });
  }

  /** Moves time by a step, and works if a job can start. @returns true if nothing changed */
  private async workOnJobs(): Promise<boolean> {
    const { changes, store } = this.service;
    const hasJobs = store.nextInMs === 0;
    await this.move(STEP_MS);
    const [changesBefore, webhooksBefore] = [changes.count, this.platform.webhookAttempts];
    if (hasJobs) await this.running.track(this.work.jobs());
    await this.platform.webhooksSent();
    return changes.count === changesBefore && this.platform.webhookAttempts === webhooksBefore;
  }

  /** True if work started elsewhere is in progress, unless only the platform can end it. */
  private async isOtherWorkRunning(): Promise<boolean> {
    return !this.platform.holdsAllCalls && (await this.running.awaitAny(POLL_INTERVAL_MS));
  }

  /** Waits out a short pause before the next job or the end of a timer. @returns false if neither comes soon */
  private async awaitNext(): Promise<boolean> {
    const { store } = this.service;
    const inMs = Math.min(store.nextInMs ?? FOREVER_MS, this.clock.nextInMs ?? FOREVER_MS);
    if (inMs > SHORT_MS) return false;
    if (inMs > 0) await this.move(Math.ceil(inMs));
    return true;
  }

  /** Moves time, one step after the other: two sessions cannot replace the database's functions at the same time. */
  private move(ms: number): Promise<void> {
    const moved = this.moving.then(async () => {
      await this.database.pool.query(timeSql(new Date(this.now().getTime() + ms)));
      this.clock.advance(ms);
      if (this.clock.monotonicMs() - this.lastBeatMs > BEAT_MS) await this.beat();
    });
    this.moving = moved.catch(() => undefined);
    return moved;
  }

  private async beat(): Promise<void> {
    await this.service.beat();
    this.lastBeatMs = this.clock.monotonicMs();
  }
}
