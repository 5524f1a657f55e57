import { PushReceiver, status } from '../../harness/push-receiver.js';
import type { World } from '../../harness/world/world.js';
import type { NewSubscriptionResponse, SubscriptionResponse } from '../../src/subscriptions/subscriptions.dto.js';
import type { FeedType } from '../../src/words/feed-types.js';
import { appendEvents } from '../support/feed-events.js';

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
    /** Works until the next message is at the endpoint; all later ones are taken immediately. */
    inDelivery: async () => {
      const before = receiver.attempts.length;
      let answer = (_status: number) => {};
      receiver.respond = (response) => {
        receiver.respond = status(204);
        answer = (code) => void response.writeHead(code).end();
      };
      const settled = world.settle();
      await world.eventually('a message arrives', () => receiver.attempts.length > before);
      return {
        /** Answers the message. Resolves when everything that follows is done. */
        answer: async (code: number) => {
          answer(code);
          await settled;
          await world.settle();
        },
      };
    },
    /** Appends events about clients. */
    append: (events: number, type?: FeedType) => appendEvents(world, events, type),
  };
}
