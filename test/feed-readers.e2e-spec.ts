import { until } from '../harness/until.js';
import type { FeedEventResponse } from '../src/feed/feed.dto.js';
import type { Page } from '../src/http/request/page.js';
import { ADMIN_KEY } from './support/app.js';
import { useSharedService } from './support/shared-service.js';
import { answerTo } from './support/webhook-requests.js';

const STREAMS = 3;
const shared = useSharedService({ env: { EVENT_STREAMS_PER_KEY: String(STREAMS) } });

const append = (events: number) =>
  shared.mirror.sql(
    `INSERT INTO feed_events (type, subject, data)
     SELECT 'person.synced', 'clients/c-' || n, '{}' FROM generate_series(1, $1::int) AS n`,
    [events],
  );

/** Opens a stream; the answer's headers are there, and its body goes on. */
async function openStream(key = ADMIN_KEY) {
  const closing = new AbortController();
  const answer = await answerTo(`${shared.service.url}/v1/events`, {
    headers: { authorization: `Bearer ${key}`, accept: 'text/event-stream' },
    signal: closing.signal,
  });
  return { answer, close: () => closing.abort() };
}

describe('a reader of the feed', () => {
  it('that gives cursor beside the after with which it began comes to the end', async () => {
    await append(25);
    const read: string[] = [];
    let path: string | undefined = '/v1/events?after=0&limit=10';
    for (let pages = 0; path !== undefined && pages < 5; pages++) {
      const page: Page<FeedEventResponse> = (await shared.service.call<Page<FeedEventResponse>>('GET', path)).body;
      read.push(...page.items.map(({ subject }) => subject));
      path = page.nextCursor === null ? undefined : `/v1/events?after=0&limit=10&cursor=${page.nextCursor}`;
    }
    expect(read).toEqual(Array.from({ length: 25 }, (_, at) => `clients/c-${at + 1}`));
  });

  it('that is the first one after many events does not pay for all of them', async () => {
    await append(5_000);
    const { body } = await shared.service.call<Page<FeedEventResponse>>('GET', '/v1/events?limit=1');
    expect(body.items).toHaveLength(1);
    const [given] = await shared.mirror.sql<{ n: number }>('SELECT count(cursor)::int AS n FROM feed_events');
    // A thousand each time that it was asked; once, unless the machine was busy.
    expect(given?.n).toBeLessThan(5_000);
    let [cursor, read] = ['0', 0];
    for (;;) {
      const { items } = (
        await shared.service.call<Page<FeedEventResponse>>('GET', `/v1/events?limit=200&after=${cursor}`)
      ).body;
      if (items.length === 0) break;
      read += items.length;
      cursor = items.at(-1)?.cursor ?? cursor;
    }
    expect([cursor, read]).toEqual(['5000', 5_000]);
  });

  it('may have so many streams open with one key, and another again when one of them has ended', async () => {
    const streams = await Promise.all(Array.from({ length: STREAMS }, () => openStream()));
    expect(streams.map(({ answer }) => answer.status)).toEqual(streams.map(() => 200));
    const refused = await openStream();
    expect([refused.answer.status, refused.answer.headers.get('retry-after')]).toEqual([429, '5']);
    expect(await refused.answer.json()).toMatchObject({ type: 'urn:notebridge:problem:too-many-streams' });

    const { body } = await shared.service.call<{ key: string }>('POST', '/v1/api-keys', {
      body: { name: 'another reader', scopes: ['events:read'] },
    });
    const other = await openStream(body.key);
    expect(other.answer.status).toBe(200);

    streams[0]?.close();
    const again = await until('a place is free again', async () => {
      const stream = await openStream();
      return stream.answer.status === 200 ? stream : undefined;
    });
    for (const { close } of [...streams, other, again]) close();
  });
});
