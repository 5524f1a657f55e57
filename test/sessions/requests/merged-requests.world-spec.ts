import type { DisclosureResponse } from '../../../src/client-records/client-records.dto.js';
import type { FeedEventResponse } from '../../../src/feed/feed.dto.js';
import type { Page } from '../../../src/http/request/page.js';
import type { SessionResponse } from '../../../src/sessions/model/session-view.js';
import type { TimelineEntryResponse } from '../../../src/sessions/read/timeline.dto.js';
import { SOAP } from '../../world/mirrored-people.js';
import { useWorld } from '../../world/use-world.js';
import { useArrivingSessions } from '../arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);

/**
 * A request whose answer was lost, an event without an appointment that made another row of its session, and the decision
 * that they are the same.
 */
async function mergedRequest(): Promise<{ request: string; session: string; sessionId: string }> {
  world.platform.set({ webhookDropRate: 1 });
  world.platform.injectFault({ operation: 'createSession', kind: 'commit-then-cut' });
  const body = { provider: 'p-1', client: 'c-1', noteTemplateIds: [SOAP], input: { text: { text: 'We talked.' } } };
  const { body: request } = await world.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 60 });
  expect(request.state).toBe('Unknown');
  world.platform.set({ webhookDropRate: 0 });
  const [made] = world.platform.simulator.state.sessions.list();
  if (!made) throw new Error('The platform has no session.');
  const { sessionId } = made;
  sessions.tell({
    ...{ eventType: 'SESSION_CREATED', sessionId, providerUserId: sessions.provider },
    ...{ partnerAppointmentId: null, aiNotesEnabled: null },
  });
  await world.settle();
  const { id: session } = await sessions.show(sessionId);
  expect(session).not.toBe(request.id);
  const action = { action: 'link', sessionId };
  expect(await world.call('POST', `/v1/sessions/${request.id}/resolve`, { body: action })).toMatchObject({
    status: 200,
  });
  sessions.toEnd(made);
  await world.settle();
  return { request: request.id, session, sessionId };
}

test('every id of a merged request leads to its session, which is listed once', async () => {
  const { request, session, sessionId } = await mergedRequest();
  for (const id of [request, session, sessionId])
    expect(await sessions.show(id)).toMatchObject({ id: session, sessionId, state: 'Done', clients: ['c-1'] });
  for (const query of ['', '?client=c-1', '?provider=p-1', '?state=Done']) {
    const { items } = (await world.call<Page<SessionResponse>>('GET', `/v1/sessions${query}`)).body;
    expect([query, items.map(({ id }) => id)]).toEqual([query, [session]]);
  }
  expect((await sessions.notesOf(request)).documents).toHaveLength(1);
});

test('the session has the timeline, the events and the disclosures of its request', async () => {
  const { request, session } = await mergedRequest();
  const page = await world.call<Page<TimelineEntryResponse>>('GET', `/v1/sessions/${request}/timeline`);
  const moments = page.body.items.flatMap((entry) => entry.request?.state ?? []);
  expect(moments).toEqual(['Settled', 'Requested']);
  for (const id of [request, session]) {
    const { items } = (await world.call<Page<FeedEventResponse>>('GET', `/v1/events?subject=sessions/${id}`)).body;
    expect(items.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['session.needs-review', 'session.merged', 'session.completed']),
    );
  }
  const all = (await world.call<Page<DisclosureResponse>>('GET', '/v1/clients/c-1/disclosures')).body.items;
  expect(all).toContainEqual(expect.objectContaining({ action: 'createSession', sessions: [request] }));
});

test('a refresh by the id of a merged request is counted until its session is fetched', async () => {
  const { request, session, sessionId } = await mergedRequest();
  expect((await world.call('POST', '/v1/sessions/refreshes', { body: { session: request } })).status).toBe(202);
  const counts = async (id: string) => (await world.call<object>('GET', `/v1/sessions/refreshes?session=${id}`)).body;
  for (const id of [request, session, sessionId])
    expect([id, await counts(id)]).toEqual([id, { pending: 1, failing: 0 }]);
  await world.settle();
  expect(await counts(request)).toEqual({ pending: 0, failing: 0 });
});
