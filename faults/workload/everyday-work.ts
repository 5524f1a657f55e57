import type { World } from '../world.js';
import { FeedWatch } from './feed-watch.js';
import { ImportWork } from './import-work.js';
import { SessionWork } from './session-work.js';

/**
 * Spreads faults over everyday work, then waits until the work is done.
 *
 * @param size how many people and sessions there are
 * @param heal ends what the faults left behind
 */
export async function faultsUnderWork(
  world: World,
  size: { people: number; sessions: number },
  faults: readonly (() => Promise<void>)[],
  heal: () => void = () => undefined,
): Promise<void> {
  const work = new EverydayWork(world, size.people, size.sessions);
  await work.begin();
  await work.under(faults);
  heal();
  await work.ended();
}

/** Everyday work: an import, session requests of the EHR, and a reader of the feed, at the same time. */
export class EverydayWork {
  private readonly people: ImportWork;
  private readonly sessions: SessionWork;
  private readonly feed: FeedWatch;

  /** @param people of the import, half of them clients */
  constructor(
    private readonly world: World,
    people: number,
    sessions: number,
  ) {
    const half = Math.ceil(people / 2);
    this.people = new ImportWork(world, { providers: half, clients: half, known: Math.floor(half / 10) });
    this.sessions = new SessionWork(world, sessions);
    this.feed = new FeedWatch(world);
  }

  /** @param key the API key for each request; the administrator's by default */
  async begin(key?: () => string): Promise<void> {
    await this.sessions.begin(key);
    await this.people.begin();
  }

  /** Spreads faults over the import: each at a random time within an equal part of it. */
  async under(faults: readonly (() => Promise<void>)[]): Promise<void> {
    for (const [place, fault] of faults.entries()) {
      await this.people.reaches((0.9 * (place + this.world.random.fraction())) / faults.length);
      await this.world.soon(100);
      await fault();
      this.world.counts.faults += 1;
    }
  }

  /** Waits until all work is done, after the last fault, and checks the invariants. */
  async ended(): Promise<void> {
    await this.world.processes.up();
    await this.sessions.ended(this.feed);
    await this.people.ended(this.feed);
    await this.feed.ended();
  }
}
