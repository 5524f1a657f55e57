import type { World } from '../../harness/world/world.js';
import { FeedBell } from '../../src/feed/feed-bell.js';
import type { FeedType } from '../../src/words/feed-types.js';

/** Appends events about the clients c-1, c-2 and so on. Nobody publishes them, as if their process was killed. */
export const leaveEvents = (world: World, events: number, type: FeedType = 'person.synced') =>
  world.sql(
    `INSERT INTO feed_events (type, subject, data)
     SELECT $1, 'clients/c-' || n, '{"externalId": "c-1"}' FROM generate_series(1, $2::int) AS n`,
    [type, events],
  );

/** Appends events, and publishes them. */
export async function appendEvents(world: World, events: number, type?: FeedType): Promise<void> {
  await leaveEvents(world, events, type);
  await world.get(FeedBell).publishLost();
}
