import type { SimulatedSession } from '../../simulator/sessions/session.js';
import type { Page } from '../../src/http/request/page.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import type { TimelineEntryResponse } from '../../src/sessions/read/timeline.dto.js';
import { SessionEventsHandler } from '../../src/sessions/session-events.handler.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { texts, useArrivingSessions } from './arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const { newSession, toEnd, show, read, tell, unheard } = useArrivingSessions(world);

async function timeline(id: string, query = 'limit=200'): Promise<Page<TimelineEntryResponse>> {
  const { status, body } = await world.call<Page<TimelineEntryResponse>>('GET', `/v1/sessions/${id}/timeline?${query}`);
  expect(status).toBe(200);
  return body;
}

/** An entry without ids and times. */
const summary = ({ event, request, notes }: TimelineEntryResponse): string =>
  [
    event && `${event.eventType} ${event.state}`,
    request?.state,
    notes && `notes ${notes.noteTemplateId} ${notes.revision}`,
  ]
    .filter((part) => part)
    .join();

const summaries = async (id: string) => (await timeline(id)).items.map(summary);

const INPUT = 'They talked about the lighthouse and of sleeping badly.';

/** Requests a session. */
async function request(): Promise<SessionResponse> {
  const wish = { provider: 'p-1', client: 'c-1', noteTemplateIds: [SOAP], partnerAppointmentId: 'visit-1' };
  const body = { ...wish, input: { text: { text: INPUT } } };
  return (await world.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 60 })).body;
}

function onPlatform(): SimulatedSession {
  const [session] = world.platform.simulator.state.sessions.list();
  if (!session) throw new Error('The platform has no session.');
  return session;
}

describe('the timeline of a session', () => {
  it('has events, the request and versions of notes, newest first, without clinical text', async () => {
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
      `notes ${SOAP} 1`,
      `notes ${SOAP} 2`,
    ]);
    expect(entries.at(-1)).toBe('Requested');
    expect(items.find((item) => item.notes)?.notes?.noteTemplateName).toBe('SOAP note');
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

  it('has everything that followed once an event settled an unknown request', async () => {
    world.platform.injectFault({ operation: 'createSession', kind: 'commit-then-cut' });
    world.platform.set({ webhookDropRate: 1 });
    const { id, state } = await request();
    expect([state, await summaries(id)]).toEqual(['Unknown', ['Requested']]);
    world.platform.set({ webhookDropRate: 0 });
    toEnd(onPlatform());
    await read(onPlatform(), 1);
    const entries = await summaries(id);
    expect(entries).toEqual(
      expect.arrayContaining(['SESSION_PROCESSING_COMPLETED processed', 'Settled', `notes ${SOAP} 1`]),
    );
    expect(entries.at(-1)).toBe('Requested');
  });

  it('has an event that could not be processed', async () => {
    const session = newSession();
    await world.settle();
    const { id } = await show(session.sessionId);
    jest.spyOn(world.get(SessionEventsHandler), 'handle').mockRejectedValueOnce(new TypeError('no'));
    tell({ eventType: 'SESSION_PROCESSING_STARTED', sessionId: session.sessionId, providerUserId: 'p' });
    await world.settle();
    const failed = (await timeline(id)).items.find(({ event }) => event?.state === 'failed');
    expect(failed?.event).toMatchObject({ eventType: 'SESSION_PROCESSING_STARTED', reason: 'TypeError' });
  });

  it('has the events that name only a processing id of the session', async () => {
    const session = unheard(() => newSession());
    tell({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId: session.processingId } });
    await world.settle();
    expect(await summaries(session.sessionId)).toContain('PROCESSING_SESSION_FINISHED processed');
  });
});
