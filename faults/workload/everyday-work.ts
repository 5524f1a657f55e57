import type { World } from '../world.js';
import { FeedWatch } from './feed-watch.js';
import { ImportWork } from './import-work.js';
import { SessionWork } from './session-work.js';

/**
 * Spreads faults over everyday work, and waits for its end once they are over.
 *
 * @param size how many people and sessions there are
 * @param heal takes away what the faults left behind
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

/** What goes on everywhere at once: an import, sessions that the EHR asks for, and the reading of the feed. */
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

  /** @param key of the EHR for each request; the administrator's unless told */
  async begin(key?: () => string): Promise<void> {
    await this.sessions.begin(key);
    await this.people.begin();
  }

  /** Spreads faults over the import: each at a moment of its own within an equal part of it. */
  async under(faults: readonly (() => Promise<void>)[]): Promise<void> {
    for (const [place, fault] of faults.entries()) {
      await this.people.reaches((0.9 * (place + this.world.random.fraction())) / faults.length);
      await this.world.soon(100);
      await fault();
      this.world.counts.faults += 1;
    }
  }

  /** Waits for the end of everything, once no fault is left, and asks the oracle. */
  async ended(): Promise<void> {
    await this.world.crew.up();
    await this.sessions.ended(this.feed);
    await this.people.ended(this.feed);
    await this.feed.ended();
  }
}
