import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import { numberOf } from '../../src/feed/feed-cursor.js';
import type { FeedType } from '../../src/feed/feed-types.js';
import type { World } from '../world.js';

/** Reads the change feed from its beginning while faults happen, as a busy EHR does. */
export class FeedWatch {
  private readonly events: FeedEventResponse[] = [];
  private stopping = false;
  private readonly reading: Promise<void>;

  constructor(private readonly world: World) {
    this.reading = this.readOn();
  }

  /** Reads all events so far. */
  async readToEnd(): Promise<void> {
    const all = await this.world.count('feed_events');
    await this.world.reach('the feed is read completely', () => this.events.length >= all);
  }

  /** Stops reading, and checks that each event was read once and in order. */
  async ended(): Promise<void> {
    await this.readToEnd();
    this.stopping = true;
    await this.reading;
    const cursors = this.events.map(({ cursor }) => Number(numberOf(cursor)));
    this.world.oracle.none(
      'the feed gives each event once and in order',
      cursors.filter((cursor, place) => cursor !== place + 1),
    );
    // Later events do not count.
    const given = `feed_events WHERE cursor <= ${cursors.at(-1) ?? 0}`;
    this.world.oracle.same('the feed omits no event', cursors.length, await this.world.count(given));
  }

  /** The subjects of the events. */
  subjectsOf(type: FeedType): Set<string> {
    return new Set(this.events.filter((event) => event.type === type).map(({ subject }) => subject));
  }

  private async readOn(): Promise<void> {
    while (!this.stopping) {
      const after = this.events.at(-1)?.cursor ?? '0';
      const path = `/v1/events?after=${after}&limit=200`;
      const answer = await this.world.ehr.call<{ items: FeedEventResponse[] }>('GET', path, { wait: 1 });
      this.events.push(...(answer?.body.items ?? []));
    }
  }
}
