import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { SessionsApp } from './sessions-app.js';

/** All events of the feed, told so far. */
export async function readFeed(service: SessionsApp): Promise<FeedEventResponse[]> {
  const items: FeedEventResponse[] = [];
  for (let after: string | null = '0'; after !== null; ) {
    const answer = await service.call('GET', `/v1/events?limit=200&after=${after}`);
    const page: Page<FeedEventResponse> = answer.json();
    items.push(...page.items);
    after = page.nextCursor;
  }
  return items;
}
