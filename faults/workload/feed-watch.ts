import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import { numberOf } from '../../src/feed/feed-cursor.js';
import type { FeedType } from '../../src/words/feed-types.js';
import type { World } from '../world.js';

/** Reads the change feed from its beginning while faults happen, as a busy EHR does. */
export class FeedWatch {
  private readonly subjects = new Map<FeedType, Set<string>>();
  private readonly outOfOrder: number[] = [];
  private cursor = '0';
  private count = 0;
  private stopping = false;
  private readonly reading: Promise<void>;

  /** @param onEvent is given each event as soon as it is read */
  constructor(
    private readonly world: World,
    private readonly onEvent: (event: FeedEventResponse) => void = () => undefined,
  ) {
    this.reading = this.readOn();
  }

  /** The number of events read so far. */
  get events(): number {
    return this.count;
  }

  /** Reads all events so far. */
  async readToEnd(): Promise<void> {
    const all = await this.world.count('feed_events');
    await this.world.reach('the feed is read completely', () => this.count >= all);
  }

  /** Stops reading, and checks that each event was read once and in order. */
  async ended(): Promise<void> {
    await this.readToEnd();
    this.stopping = true;
    await this.reading;
    this.world.oracle.none('the feed gives each event once and in order', this.outOfOrder);
    // Later events do not count.
    const given = `feed_events WHERE cursor <= ${numberOf(this.cursor)}`;
    this.world.oracle.same('the feed omits no event', this.count, await this.world.count(given));
  }

  /** The subjects of the events. */
  subjectsOf(type: FeedType): ReadonlySet<string> {
    return this.subjects.get(type) ?? new Set();
  }

  private async readOn(): Promise<void> {
    while (!this.stopping) {
      const path = `/v1/events?after=${this.cursor}&limit=200`;
      const answer = await this.world.ehr.call<{ items: FeedEventResponse[] }>('GET', path, { wait: 1 });
      for (const event of answer?.body.items ?? []) this.take(event);
    }
  }

  private take(event: FeedEventResponse): void {
    const { cursor, type, subject } = event;
    this.count += 1;
    const number = Number(numberOf(cursor));
    if (number !== this.count) this.outOfOrder.push(number);
    this.cursor = cursor;
    const subjects = this.subjects.get(type) ?? new Set();
    this.subjects.set(type, subjects.add(subject));
    this.onEvent(event);
  }
}
