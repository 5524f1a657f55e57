import type { World } from '../../harness/world/world.js';
import type { FeedEventResponse, FeedPageResponse } from '../../src/feed/feed.dto.js';
import type { FeedType } from '../../src/words/feed-types.js';

/** How long an event may take, in real seconds: the maximum of `Prefer: wait`. World time passes only in `provoke`. */
const WAIT_SECONDS = 60;

/** Waits for events as an EHR does, which reads their subjects at once. */
export function publishedIn(world: World) {
  return {
    /**
     * Waits for the first event of a type that follows from `provoke`, and returns as soon as it is published.
     *
     * @param provoke must not settle the world, so that what causes the event has not gone on
     */
    async published(type: FeedType, provoke: () => unknown): Promise<FeedEventResponse> {
      const { cursor } = (await world.call<FeedPageResponse>('GET', '/v1/events?after=latest')).body;
      await provoke();
      const path = `/v1/events?after=${cursor}&types=${type}`;
      const [event] = (await world.call<FeedPageResponse>('GET', path, { wait: WAIT_SECONDS })).body.items;
      if (!event) throw new Error(`${type} was not published.`);
      return event;
    },
    /** The answer to a GET below /v1, which must be 200. */
    async shown<T = object>(path: string): Promise<T> {
      const { status, body } = await world.call<T>('GET', `/v1/${path}`);
      expect([path, status]).toEqual([path, 200]);
      return body;
    },
  };
}
