import { takeStep } from '../../simulator/sessions/session-run.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { PlatformClient } from '../../src/platform/clients/platform-client.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { SessionsRepository } from '../../src/sessions/model/sessions.repository.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { useArrivingSessions } from './arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { newSession, toEnd, show, notesOf, fetches, tell, unheard } = sessions;

/** A session that is Done, and whose answers lack the notes until `catchUp`, as those of a lagging replica. */
async function lagging() {
  const client = world.get(PlatformClient);
  const get = client.getSession.bind(client);
  const stale = jest.spyOn(client, 'getSession').mockImplementation(async (...asked) => {
    const { notes: _, ...answer } = await get(...asked);
    return { ...answer, notes: [] };
  });
  const session = newSession({ noteTemplateIds: [SOAP] });
  toEnd(session);
  await world.settle();
  return { session, catchUp: () => stale.mockRestore() };
}

const eventsOf = async (id: string) =>
  (await world.call<Page<FeedEventResponse>>('GET', '/v1/events?limit=200')).body.items.filter(
    ({ subject }) => subject === `sessions/${id}`,
  );

describe('announced notes that a fetch does not show', () => {
  it('are fetched again after 2 s, 10 s, 60 s, 10 min and 1 h', async () => {
    await lagging();
    const times: number[] = [];
    for (const span of ['3 s', '10 s', '50 s', '11 s', '10 min', '1 h', '1 h', '1 h'] as const) {
      const before = fetches();
      await world.advance(span);
      await world.settle();
      times.push(fetches() - before);
    }
    expect(times).toEqual([1, 1, 0, 1, 1, 1, 0, 0]);
  });

  it('are stored once the platform shows them', async () => {
    const { session, catchUp } = await lagging();
    expect((await notesOf(session.sessionId)).documents).toEqual([]);
    catchUp();
    await world.advance('3 s');
    await world.settle();
    expect((await notesOf(session.sessionId)).documents).toHaveLength(1);
    const before = fetches();
    await world.advance('2 h');
    await world.settle();
    expect(fetches()).toBe(before);
  });

  it('are not awaited after an event that rules them out', async () => {
    const event = { providerUserId: sessions.provider, partnerAppointmentId: 'a-1' };
    const session = unheard(() => {
      const made = newSession({ noteTemplateIds: [] });
      toEnd(made);
      return made;
    });
    tell({ ...event, eventType: 'SESSION_PROCESSING_COMPLETED', sessionId: session.sessionId, aiNotesEnabled: false });
    await world.settle();
    const before = fetches();
    await world.advance('2 h');
    await world.settle();
    expect([before, fetches()]).toEqual([1, 1]);
  });
});

it('notes stay current while a session that is processed again has an empty list', async () => {
  const session = newSession({ noteTemplateIds: [SOAP] });
  toEnd(session);
  await world.settle();
  const client = world.get(PlatformClient);
  const get = client.getSession.bind(client);
  const state: { state: 'Processing' | 'Done' } = { state: 'Processing' };
  jest
    .spyOn(client, 'getSession')
    .mockImplementation(async (...asked) => ({ ...(await get(...asked)), ...state, notes: [] }));
  await sessions.refresh(session);
  await world.settle();
  expect((await notesOf(session.sessionId)).documents).toMatchObject([{ supersededAt: null }]);
  state.state = 'Done';
  await sessions.refresh(session);
  await world.settle();
  expect((await notesOf(session.sessionId)).documents).toMatchObject([{ supersededAt: expect.any(String) }]);
});

describe('an answer with an odd part', () => {
  it('loses that part, and is marked in the document, the session, the feed and health', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    const [document] = session.documents.values();
    const lines = document?.notes as unknown[];
    const count = lines.length;
    lines.push(
      { category: 'Plan', text: null },
      { category: 'Plan', text: 'Rest.', formatting: { nestingLevel: '1' } },
    );
    session.state = 'Archived' as never;
    await world.settle();
    const notes = await notesOf(session.sessionId);
    expect(notes.documents).toMatchObject([{ incomplete: true, revision: 1 }]);
    expect(notes.documents[0]?.notes).toHaveLength(count + 1);
    expect(notes.documents[0]?.notes.at(-1)).toMatchObject({ text: 'Rest.', nestingLevel: 0 });
    const shown = await show(session.sessionId);
    expect([shown.state, [...shown.incomplete].sort()]).toEqual(['Archived', ['notes', 'state']]);
    const ready = (await eventsOf(shown.id)).filter(({ type }) => type === 'session.notes-ready');
    expect(ready.map(({ data }) => [data.state, [...(data.incomplete as string[])].sort()])).toEqual([
      ['Archived', ['notes', 'state']],
    ]);
    const { checks } = (await world.call<HealthReport>('GET', '/health/ready')).body;
    expect(checks.decisions).toMatchObject({ status: 'degraded', facts: { 'session-unreadable': 1 } });
  });
});

describe('a failed session', () => {
  it.each(['the event', 'the answer'])('is published once, by %s, with its state', async (first) => {
    const session = newSession();
    session.willFail = true;
    if (first === 'the event')
      world.platform.injectFault({ operation: 'getSession', kind: 'status', status: 503, count: 5 });
    if (first === 'the answer') {
      unheard(() => toEnd(session));
      tell({
        eventType: 'SESSION_CREATED',
        sessionId: session.sessionId,
        providerUserId: sessions.provider,
        aiNotesEnabled: null,
      });
      await world.settle();
      tell({
        eventType: 'SESSION_PROCESSING_FAILED',
        sessionId: session.sessionId,
        providerUserId: sessions.provider,
        aiNotesEnabled: null,
      });
    } else toEnd(session);
    await world.settle();
    await world.advance('1 h');
    await world.settle();
    const { id, state } = await show(session.sessionId);
    const failed = (await eventsOf(id)).filter(({ type }) => type === 'session.failed');
    expect([state, failed.map(({ data }) => data.state)]).toEqual(['Error', ['Error']]);
    expect(failed[0]?.data).toMatchObject({ provider: 'p-1' });
  });
});

it('an end without an answer is published after ten minutes, as a GET shows it', async () => {
  world.platform.injectFault({ operation: 'getSession', kind: 'status', status: 503, count: null });
  const session = newSession({ partnerAppointmentId: 'a-1' });
  // Webhooks in flight together may overtake each other.
  for (await world.settle(); session.nextStep; await world.settle()) takeStep(world.platform.simulator.state, session);
  const { id } = await show(session.sessionId);
  const published = async () => (await eventsOf(id)).map(({ type, data }) => [type, data.state, data.provider]);
  const begun = [
    ['session.created', 'InProgress', 'p-1'],
    ['session.processing-started', 'Processing', 'p-1'],
  ];
  expect(await published()).toEqual(begun);
  await world.advance('9 min');
  await world.settle();
  expect(await published()).toEqual(begun);
  await world.advance('1 min');
  await world.settle();
  expect(await published()).toEqual([...begun, ['session.completed', 'Done', 'p-1']]);
  expect(await show(session.sessionId)).toMatchObject({ state: 'Done', stateFrom: 'events', aiNotesFinal: true });
  world.platform.release();
  await world.advance('1 h');
  await world.settle();
  expect((await published()).filter(([type]) => type === 'session.completed')).toHaveLength(1);
});

/** Lets a test and a transaction wait for each other. */
function signal() {
  let raise = () => {};
  const raised = new Promise<void>((resolve) => {
    raise = resolve;
  });
  return { raised, raise };
}

describe('updatedSince', () => {
  const changedSince = async (since: string) =>
    (await world.call<Page<SessionResponse>>('GET', `/v1/sessions?updatedSince=${encodeURIComponent(since)}`)).body
      .items;

  it('shows a change that was committed late to a reader that overlaps five minutes', async () => {
    const [slow, fast] = [newSession(), newSession()];
    await world.settle();
    const [prisma, rows] = [world.get(PrismaService), world.get(SessionsRepository)];
    const change = (sessionId: string, until: Promise<void> = Promise.resolve()) =>
      prisma.transaction(async (tx) => {
        const { row } = await rows.createOrLock(tx, sessionId);
        await rows.save(tx, row, { partnerAppointmentId: 'moved', updatedAt: row.now });
        changed.raise();
        await until;
      });
    const [changed, released] = [signal(), signal()];
    const writing = change(slow.sessionId, released.raised);
    await changed.raised;
    await world.advance('1 min');
    await change(fast.sessionId);
    const newest = (await changedSince('2000-01-01T00:00:00Z')).at(-1);
    expect(newest?.sessionId).toBe(fast.sessionId);
    released.raise();
    await writing;
    const overlap = new Date(new Date(newest?.updatedAt ?? 0).getTime() - 5 * 60_000).toISOString();
    expect((await changedSince(overlap)).map(({ sessionId }) => sessionId)).toContain(slow.sessionId);
  });
});
