import { PushReceiver } from '../../harness/push-receiver.js';
import type { World } from '../../harness/world/world.js';
import type { FeedType } from '../../src/feed/feed.js';
import type { NewSubscriptionResponse, SubscriptionResponse } from '../../src/subscriptions/subscriptions.dto.js';

/** Subscriptions of a world, and the endpoint that they push to. */
export function usePushes(world: World) {
  let receiver: PushReceiver;
  beforeEach(async () => {
    receiver = await PushReceiver.start();
  });
  afterEach(() => receiver.close());
  return {
    get receiver() {
      return receiver;
    },
    subscribe: async (body: Record<string, unknown> = {}): Promise<NewSubscriptionResponse> =>
      (
        await world.call<NewSubscriptionResponse>('POST', '/v1/subscriptions', {
          body: { url: receiver.url, ...body },
        })
      ).body,
    read: async (id: string): Promise<SubscriptionResponse> =>
      (await world.call<SubscriptionResponse>('GET', `/v1/subscriptions/${id}`)).body,
    patch: (id: string, body: Record<string, unknown>) =>
      world.call<SubscriptionResponse>('PATCH', `/v1/subscriptions/${id}`, { body }),
    /** Appends events about clients. */
    append: (events: number, type: FeedType = 'person.synced') =>
      world.sql(
        `INSERT INTO feed_events (type, subject, data)
         SELECT $2, 'clients/c-' || n, '{"externalId": "c-1"}' FROM generate_series(1, $1::int) AS n`,
        [events, type],
      ),
  };
}
