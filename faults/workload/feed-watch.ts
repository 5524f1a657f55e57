import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import { numberOf } from '../../src/feed/feed-cursor.js';
import type { FeedType } from '../../src/feed/feed-types.js';
import type { World } from '../world.js';

/** Reads the change feed from its beginning for as long as faults go on, as an EHR that never sleeps. */
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

  /** How many events were read. */
  get events(): number {
    return this.count;
  }

  /** Reads whatever there is by now. */
  async readToEnd(): Promise<void> {
    const all = await this.world.count('feed_events');
    await this.world.reach('the feed is read to its end', () => this.count >= all);
  }

  /** Reads no more, and asks the oracle whether each event was read once and in order. */
  async ended(): Promise<void> {
    await this.readToEnd();
    this.stopping = true;
    await this.reading;
    this.world.oracle.none('the feed gives each event once and in order', this.outOfOrder);
    // What is written after the last reading is not asked for.
    const given = `feed_events WHERE cursor <= ${numberOf(this.cursor)}`;
    this.world.oracle.same('the feed leaves nothing out', this.count, await this.world.count(given));
  }

  /** The subjects that the feed told of. */
  told(type: FeedType): ReadonlySet<string> {
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
