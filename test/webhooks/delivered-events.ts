import type { World } from '../../harness/world/world.js';
import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';

/** Delivers the platform's events, and reads the feed's events that follow. */
export function deliveredEvents(world: World) {
  /** The events of the feed, oldest first. */
  const feed = async () =>
    (await world.call<Page<FeedEventResponse>>('GET', '/v1/events?limit=200&after=0')).body.items;
  return {
    feed,
    newest: async (type: string) => (await feed()).findLast((event) => event.type === type),
    /** Type and AI notes of the events about a session. */
    async feedOf(sessionId: string) {
      const { id } = (await world.call<SessionResponse>('GET', `/v1/sessions/${sessionId}`)).body;
      return (await feed())
        .filter(({ subject }) => subject === `sessions/${id}`)
        .map(({ type, data }) => [type, data.aiNotesEnabled]);
    },
    /** Delivers an event and waits until it is handled. */
    async deliver(event: object): Promise<void> {
      world.platform.simulator.state.deliveries.send(event as never);
      await world.settle();
    },
  };
}
