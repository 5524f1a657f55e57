import { randomUUID } from 'node:crypto';
import { Database } from '../src/database/database.js';
import { SessionContentRepository } from '../src/sessions/refresh/session-content.repository.js';
import { SessionMerge } from '../src/sessions/refresh/session-merge.repository.js';
import { sealedFacts } from './support/session-facts.js';
import { type RequestsApp, startRequestsApp } from './support/session-requests-app.js';

let app: RequestsApp;

beforeAll(async () => {
  // Nothing can be fetched: what is known is all that there will ever be.
  app = await startRequestsApp({}, ['getSession', 'getProcessingSession']);
});

afterAll(() => app?.close());

test('a request that turns out to be a session that was heard of takes over its transcript and insights', async () => {
  const [requested, heard] = [randomUUID(), randomUUID()];
  await app.sql(
    `INSERT INTO sessions (id, session_id, state, facts)
     VALUES ($1, NULL, 'Requested', $3), ($2, 'of-the-platform', 'Done', $4)`,
    [requested, heard, sealedFacts(requested, {}), sealedFacts(heard, { session_id: 'of-the-platform' })],
  );
  const transcript = [{ speaker: 'A', text: 'They spoke of the week.' }];
  const nest = app.service.app;
  await nest.get(Database).transaction(async (tx) => {
    await nest.get(SessionContentRepository).storeInsights(tx, heard, { transcript, topics: null }, new Date());
    await nest.get(SessionMerge).mergeInto(tx, requested, heard);
  });
  for (const id of [requested, heard, 'of-the-platform']) {
    expect((await app.service.call('GET', `/v1/sessions/${id}/transcript`)).json()).toEqual(transcript);
    expect((await app.service.call('GET', `/v1/sessions/${id}/insights`)).json()).toMatchObject({ topics: null });
  }
  expect(await app.sql('SELECT session FROM session_insights')).toEqual([{ session: requested }]);
});
