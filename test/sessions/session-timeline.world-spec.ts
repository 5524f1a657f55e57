import { randomUUID } from 'node:crypto';
import type { SimulatedSession } from '../../simulator/sessions/session.js';
import type { Page } from '../../src/http/request/page.js';
import { PlatformClient } from '../../src/platform/clients/platform-client.js';
import { RequestSender } from '../../src/sessions/create/request-sender.js';
import { SessionCalls } from '../../src/sessions/model/session-calls.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import type { TimelineEntryResponse } from '../../src/sessions/read/timeline.dto.js';
import { SessionEventsRepository } from '../../src/sessions/refresh/session-events.repository.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { texts, useArrivingSessions } from './arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const { newSession, toEnd, show, shownAs, read, refresh, tell, unheard } = useArrivingSessions(world);

async function timeline(id: string, query = 'limit=200'): Promise<Page<TimelineEntryResponse>> {
  const { status, body } = await world.call<Page<TimelineEntryResponse>>('GET', `/v1/sessions/${id}/timeline?${query}`);
  expect(status).toBe(200);
  return body;
}

/** An entry without ids and times. */
const summary = ({ event, call, request, notes }: TimelineEntryResponse): string =>
  [
    event && `${event.eventType} ${event.state}`,
    call && `${call.operation} ${call.outcome}${call.status === null ? '' : ` ${call.status}`}`,
    request?.state,
    notes && `notes ${notes.noteTemplateId} ${notes.revision}`,
  ]
    .filter((part) => part)
    .join();

const summaries = async (id: string) => (await timeline(id)).items.map(summary);

const INPUT = 'They spoke of the lighthouse and of sleeping badly.';

/** Requests a session. @param wait 0: it is not sent yet */
async function request(wait = 60): Promise<SessionResponse> {
  const wish = { provider: 'p-1', client: 'c-1', noteTemplateIds: [SOAP], partnerAppointmentId: 'visit-1' };
  const body = { ...wish, input: { text: { text: INPUT } } };
  return (await world.call<SessionResponse>('POST', '/v1/sessions', { body, wait })).body;
}

function onPlatform(): SimulatedSession {
  const [session] = world.platform.simulator.state.sessions.list();
  if (!session) throw new Error('The platform has no session.');
  return session;
}

describe('the timeline of a session', () => {
  it('has events, calls, the request and versions of notes, newest first, without clinical text', async () => {
    const { id } = await request();
    const session = onPlatform();
    toEnd(session);
    await read(session, 1);
    await world.advance('1 s');
    await world.call('PATCH', `/v1/sessions/${id}`, { body: { noteTemplateIds: [SOAP] } });
    toEnd(session);
    const notes = await read(session, 2);

    const { items, nextCursor } = await timeline(id);
    expect(nextCursor).toBeNull();
    const times = items.map(({ at }) => Date.parse(String(at)));
    expect(times).toEqual([...times].sort((a, b) => b - a));
    const entries = items.map(summary);
    expect([...new Set(entries)].sort()).toEqual([
      'Requested',
      'SESSION_CREATED processed',
      'SESSION_PROCESSING_COMPLETED processed',
      'SESSION_PROCESSING_NOTES_COMPLETED processed',
      'SESSION_PROCESSING_STARTED processed',
      'Settled',
      'createSession answered',
      'getSession answered',
      `notes ${SOAP} 1`,
      `notes ${SOAP} 2`,
      'updateSession answered',
    ]);
    expect(entries.at(-1)).toBe('Requested');
    const event = items.find((item) => item.event)?.event;
    const sent = 'SELECT sent_at::float8 FROM webhook_deliveries WHERE id = $1';
    const [stored] = await world.sql<{ sent_at: number }>(sent, [event?.deliveryId]);
    expect(new Date(stored?.sent_at ?? 0).toISOString()).toBe(event?.sentAt);
    const whole = JSON.stringify(items);
    expect([INPUT, ...texts(notes)].filter((text) => whole.includes(text))).toEqual([]);

    const paged: TimelineEntryResponse[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Page<TimelineEntryResponse> = await timeline(id, `limit=2${cursor && `&cursor=${cursor}`}`);
      expect(page.items.length).toBeLessThanOrEqual(2);
      paged.push(...page.items);
      cursor = page.nextCursor;
    }
    expect(paged).toEqual(items);
  });

  it('has the attempt without an answer, and everything that followed once an event settled it', async () => {
    world.platform.injectFault({ operation: 'createSession', kind: 'commit-then-cut' });
    world.platform.set({ webhookDropRate: 1 });
    const { id, state } = await request();
    expect([state, await summaries(id)]).toEqual(['Unknown', ['createSession unknown-outcome', 'Requested']]);
    world.platform.set({ webhookDropRate: 0 });
    toEnd(onPlatform());
    await read(onPlatform(), 1);
    const entries = await summaries(id);
    expect(entries).toEqual(
      expect.arrayContaining(['SESSION_PROCESSING_COMPLETED processed', 'Settled', `notes ${SOAP} 1`]),
    );
    expect(entries.slice(-2)).toEqual(['createSession unknown-outcome', 'Requested']);
  });

  it('has a lost attempt once, and its late answer in its place', async () => {
    world.platform.set({ webhookDropRate: 1 });
    const { id } = await request(0);
    const { app, work } = await world.startAnother();
    const platform = app.get(PlatformClient);
    const create = platform.createSession.bind(platform);
    let letAnswerCome = () => {};
    const held = new Promise<void>((resolve) => {
      letAnswerCome = resolve;
    });
    jest.spyOn(platform, 'createSession').mockImplementation(async (body) => {
      const answer = await create(body);
      await held;
      return answer;
    });
    const sending = work.requests();
    await world.untilCalled('createSession');
    const [attempt] = await world.sql<{ no: string }>('SELECT lease_no AS no FROM session_requests');
    await world.advance('5 min'); // without a heartbeat of the other process
    const sender = world.get(RequestSender);
    await Promise.all([sender.settleLost(), sender.settleLost()]);
    await shownAs(id, 'Unknown');
    const creates = async () =>
      (await timeline(id)).items.flatMap(({ call }) => (call?.operation === 'createSession' ? [call] : []));
    expect(await creates()).toEqual([{ operation: 'createSession', outcome: 'lost', status: null, durationMs: null }]);
    letAnswerCome();
    await sending;
    expect(await creates()).toMatchObject([{ outcome: 'answered' }]);
    await world.get(SessionCalls).lostCreate({ key: id, no: attempt?.no ?? '' } as never);
    expect(await creates()).toMatchObject([{ outcome: 'answered' }]);
  });

  it('has an event that could not be processed, and a failed look-up', async () => {
    const session = newSession();
    await world.settle();
    const { id } = await show(session.sessionId);
    jest.spyOn(world.get(SessionEventsRepository), 'recordEvent').mockRejectedValueOnce(new TypeError('no'));
    tell({ eventType: 'SESSION_PROCESSING_STARTED', sessionId: session.sessionId, providerUserId: 'p' });
    await world.settle();
    const failed = (await timeline(id)).items.find(({ event }) => event?.state === 'failed');
    expect(failed?.event).toMatchObject({ eventType: 'SESSION_PROCESSING_STARTED', reason: 'TypeError' });
    world.platform.simulator.state.sessions.remove(session);
    await world.sql(`UPDATE sessions SET traceparents = '{former}'`);
    await refresh(session);
    await world.settle();
    expect(await summaries(id)).toContain('getSession not-found 404');
    // The next look-up has another cause.
    expect(await world.sql('SELECT traceparents FROM sessions')).toEqual([{ traceparents: [] }]);
  });

  it('has a look-up that ended after its session became another', async () => {
    const { id } = await request();
    const former = randomUUID();
    const end = world.get(SessionCalls).begin(former, 'getProcessingSession');
    await world.sql('INSERT INTO session_aliases (id, session) VALUES ($1, $2)', [former, id]);
    await end()();
    expect(await summaries(id)).toContain('getProcessingSession answered');
  });

  it('has the events that name only a processing id of the session', async () => {
    const session = unheard(() => newSession());
    tell({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId: session.processingId } });
    await world.settle();
    expect(await summaries(session.sessionId)).toContain('PROCESSING_SESSION_FINISHED processed');
  });
});
