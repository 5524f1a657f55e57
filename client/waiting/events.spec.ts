import { createClient } from '../create-client.js';
import { type Answer, json, useAnsweringServer } from '../sending/answering-server.spec-support.js';

const server = useAnsweringServer();
const lost: Answer = (response) => response.destroy();
const page = json('{"items": [{"cursor": "1-1"}], "cursor": "1-1", "nextCursor": "1-1"}');

/** Reads one event. */
async function readOne(attempts: number) {
  for await (const { cursor } of createClient({ url: server.url, attempts }).events()) return cursor;
}

test('events() gives up on a service that has never answered', async () => {
  server.answers = [lost];
  await expect(readOne(2)).rejects.toMatchObject({ type: 'no-answer' });
  expect(server.requests).toHaveLength(2);
});

test('events() reconnects without an end once the service has answered', async () => {
  server.answers = [page, lost, lost, page];
  let read = 0;
  for await (const _ of createClient({ url: server.url, attempts: 1 }).events()) {
    read += 1;
    if (read === 2) break;
  }
  expect(server.requests).toHaveLength(4);
});

test.each(['{}', '[]', 'null', '{"items": 1}'])('events() names a service that answers with %s', async (body) => {
  server.answers = [json(body)];
  await expect(readOne(1)).rejects.toMatchObject({
    name: 'NotebridgeError',
    type: 'unreadable-answer',
    message: expect.stringContaining('url'),
  });
});
