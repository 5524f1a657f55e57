import { setTimeout as delay } from 'node:timers/promises';
import type { Type } from '@nestjs/common';
import { DEFAULT_API_KEY } from '../../simulator/app.js';
import type { Settings } from '../../simulator/settings.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import { until } from '../until.js';
import { ApiDescription } from './api-description.js';
import { FOREVER_MS, Platform, type Rule } from './platform.js';
import { type Answer, type CallOptions, request } from './request.js';
import { msOf, type Span, timeSql, WorldClock, WorldRandom } from './time.js';
import { FREQUENT, WORK_OF_QUEUES, type Work } from './work.js';
import { copyOf, type WorldDatabase } from './world-database.js';
import { type ServiceParts, startService, type Variables, type WorldService } from './world-service.js';

const ADMIN_KEY = 'admin-key-of-the-notebridge-tests';
const WEBHOOK_SECRET = 'webhook-secret-of-the-tests';
export const DATA_KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`;

/** Milliseconds between two beats of the service's heart. */
const BEAT_MS = 2_000;

/** Milliseconds that pass before each request and each round of work: what a test does first is earlier than what follows. */
const STEP_MS = 1;

/** Milliseconds that a rest may be broken by: what only bundles work (a debounce, the pace of the limit) is waited for. */
const SHORT_MS = 500;

/** Rounds after which the world counts as one that never rests. */
const MOST_ROUNDS = 10_000;

/** Milliseconds of the machine between two looks for new work while something is waited for; so often none, and all is looked at. */
const LOOK_MS = 5;
const QUIET_LOOKS = 40;

/** What passes between two tests: longer than every pause that a process keeps in its memory. */
const BETWEEN_TESTS: Span = '1 h';

export interface WorldOptions {
  /** Of the service, beside the usual; undefined takes one away. */
  readonly settings?: Variables;
  /** Of the platform. */
  readonly platform?: Partial<Settings>;
}

/** A call that the platform holds back, and the work that waits for it. */
export interface Held {
  /** Has every call answered that is held back. @returns resolves when the world rests */
  answer(): Promise<void>;
  /** When that work has ended, however it did. */
  readonly ended: Promise<void>;
}

/**
 * The whole service, PostgreSQL, HTTP and the platform's double in one process, where nothing happens by itself: work is
 * done when a test says so (`settle`), and time passes when a test says so (`advance`), in the database too.
 */
export class World {
  private service!: WorldService;
  private readonly random = new WorldRandom();
  private readonly surroundings: ServiceParts;
  private isAltered = false;
  private moving: Promise<unknown> = Promise.resolve();
  private beatAtMs = 0;
  private readonly others: WorldService[] = [];
  private readonly underWay = new Set<Promise<void>>();
  private readonly goingOn = new Set<Promise<unknown>>();

  private constructor(
    readonly platform: Platform,
    readonly database: WorldDatabase,
    private readonly clock: WorldClock,
    private readonly settings: Variables,
  ) {
    this.surroundings = { clock, random: this.random, step: () => this.move(STEP_MS) };
  }

  /** @param server PostgreSQL's address @param template a database with the world's time and every migration */
  static async start(server: string, template: string, { settings = {}, platform = {} }: WorldOptions): Promise<World> {
    const clock = new WorldClock();
    const database = await copyOf(server, template);
    const double = await Platform.start(clock, { webhookSecret: WEBHOOK_SECRET, ...platform });
    const world = new World(double, database, clock, {
      PLATFORM_BASE_URL: double.url,
      PLATFORM_API_KEY: DEFAULT_API_KEY,
      PLATFORM_WEBHOOK_SECRET: WEBHOOK_SECRET,
      PLATFORM_CONTRACT: 'simulator/contract.json',
      PLATFORM_TIMEOUT_SECONDS: '20',
      ADMIN_API_KEY: ADMIN_KEY,
      USER_MANAGEMENT_CALLS_PER_MINUTE: '6000',
      DATABASE_URL: database.url,
      DATA_KEYS,
      ...settings,
    });
    await world.serve();
    return world;
  }

  /** What the service does by itself, kind by kind. */
  get work(): Work {
    return this.service.work;
  }

  get url(): string {
    return this.service.url;
  }

  get app(): WorldService['app'] {
    return this.service.app;
  }

  /** A part of the service. */
  get<T>(part: Type<T>): T {
    return this.app.get(part, { strict: false });
  }

  now(): Date {
    return this.clock.now();
  }

  /** Sends one request to the service. @throws {Error} if the API's description does not cover the answer */
  async call<Body = PersonResponse>(method: string, path: string, options: CallOptions = {}): Promise<Answer<Body>> {
    await this.move(STEP_MS);
    const answering = request<Body>(`${this.url}${path}`, method, { key: ADMIN_KEY, ...options });
    const answer = await (options.wait ? this.workWhile(answering) : answering);
    (await ApiDescription.of(this.app)).check(method, path, answer);
    return answer;
  }

  /** The rows of one statement. */
  async sql<Row = Record<string, unknown>>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.database.pool.query(text, values)).rows as Row[];
  }

  /** Waits until a call of this operation is at the platform, or has been. @param before calls that do not count */
  untilCalled(operation: string, before = 0): Promise<boolean> {
    return until(`${operation} arrives`, () => this.platform.arrivals(operation) > before);
  }

  /** Works until the platform holds a call back, which it does at once, and answers when told to. */
  async untilHeld(rule: Rule & { operation: string }): Promise<Held> {
    const before = this.platform.arrivals(rule.operation);
    this.platform.hold(rule);
    const ended = this.settle();
    this.unawaited(ended);
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
   * Works, and has the platform tell what it has to tell, until nothing is due. Time passes by no more than what is due
   * within half a second of a rest. While the platform holds a call back, this waits for it as the service does.
   */
  async settle(): Promise<void> {
    await this.platform.hasTold();
    for (let rounds = 0; rounds < MOST_ROUNDS; rounds += 1) {
      const notified = await this.shortWait();
      const isQuiet = await this.workOn(notified ?? FREQUENT);
      // What was notified for comes first; then all is looked at, as the pollers do.
      if (notified === undefined && isQuiet && !(await this.othersWork())) return this.work.seals();
    }
    const { last } = this.service.changes;
    throw new Error(`The world does not come to rest; what it changed last:\n${last.join('\n')}`);
  }

  /** Works while something is waited for. */
  async workWhile<T>(waited: Promise<T>): Promise<T> {
    let isOver = false;
    const over = waited.then(
      () => undefined,
      () => undefined,
    );
    void over.then(() => {
      isOver = true;
    });
    for (let quiet = 0; ; quiet += 1) {
      await Promise.race([over, delay(LOOK_MS)]);
      if (isOver) return waited;
      const notified = await this.shortWait();
      if (notified) quiet = 0;
      if (notified) await Promise.race([over, this.unawaited(this.workOn(notified))]);
      else if (quiet === QUIET_LOOKS) await Promise.race([over, this.unawaited(this.settle())]);
    }
  }

  /** Lets time pass, for the service, the platform and the database; the service's heart beats at its end. */
  async advance(span: Span): Promise<void> {
    await this.move(msOf(span));
    await this.beat();
  }

  /** Ends the service in order, and starts another with other settings beside the world's own; until the test ends. */
  async restart(settings: Variables = {}): Promise<void> {
    await this.service.app.close();
    this.isAltered = Object.keys(settings).length > 0;
    await this.serve(settings);
  }

  /** One more process of the service until the test ends, whose work and heart are the test's own to move. */
  async startAnother(settings: Variables = {}): Promise<WorldService> {
    const service = await startService({ ...this.settings, ...settings }, this.surroundings);
    this.others.push(service);
    return service;
  }

  /** Begins anew: nobody and nothing on either side, and whatever a process remembers is long ago. */
  async reset(): Promise<void> {
    this.platform.release();
    await this.platform.hasTold();
    await Promise.all(this.goingOn);
    for (const { app } of this.others.splice(0)) await app.close();
    if (this.isAltered) await this.restart();
    await this.database.forget();
    this.platform.simulator.state.reset();
    this.random.begin();
    this.tellPlatform();
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
    this.service = await startService({ ...this.settings, ...settings }, this.surroundings);
    this.beatAtMs = this.clock.monotonicMs();
    this.tellPlatform();
  }

  private tellPlatform(): void {
    this.platform.set({ webhookUrl: `${this.url}/webhooks/platform` });
  }

  /** Does all that is due of some kinds, and has the platform tell of it. @returns whether nothing was changed */
  private async workOn(kinds: Iterable<keyof Work>): Promise<boolean> {
    const { changes } = this.service;
    await this.move(STEP_MS);
    const [changed, told] = [changes.count, this.platform.told];
    for (const kind of kinds) await this.followed(this.work[kind]());
    await this.platform.hasTold();
    return changes.count === changed && this.platform.told === told;
  }

  private async followed(work: Promise<void>): Promise<void> {
    this.underWay.add(work);
    await work.finally(() => this.underWay.delete(work));
  }

  /** Work that may go on when nobody waits for it any more, and whose faults show in what comes of it. */
  private unawaited(work: Promise<unknown>): Promise<unknown> {
    const ended = work.catch(() => undefined).finally(() => this.goingOn.delete(ended));
    this.goingOn.add(ended);
    return ended;
  }

  /** Whether work goes on that was begun elsewhere, after a moment of it; what the platform holds back rests, too. */
  private async othersWork(): Promise<boolean> {
    if (this.underWay.size === 0 || this.platform.isAsked) return false;
    await Promise.race([...this.underWay, delay(LOOK_MS)]);
    return true;
  }

  /** Waits for what is due soon. @returns what was notified for then; undefined when nothing is due soon */
  private async shortWait(): Promise<Set<keyof Work> | undefined> {
    const { notified } = this.service;
    const inMs = Math.min(notified.nextInMs ?? FOREVER_MS, this.clock.nextInMs ?? FOREVER_MS);
    if (inMs > SHORT_MS) return undefined;
    if (inMs > 0) await this.move(Math.ceil(inMs));
    return new Set([...notified.take()].map((queue) => WORK_OF_QUEUES[queue]));
  }

  /** One step at a time: the database's functions can't be replaced by two at once. */
  private move(ms: number): Promise<void> {
    const moved = this.moving.then(async () => {
      await this.database.pool.query(timeSql(new Date(this.now().getTime() + ms)));
      this.clock.pass(ms);
      if (this.clock.monotonicMs() - this.beatAtMs > BEAT_MS) await this.beat();
    });
    this.moving = moved.catch(() => undefined);
    return moved;
  }

  private async beat(): Promise<void> {
    await this.service.beat();
    this.beatAtMs = this.clock.monotonicMs();
  }
}
