import { until } from '../harness/until.js';
import { beginRegeneration, takeStep } from '../simulator/sessions/session-run.js';
import type { WebhookEvent } from '../simulator/webhooks/delivery.js';
import { FEED_TYPES } from '../src/feed/feed.js';
import { EVENT_TYPES, type EventType } from '../src/platform/contract/wire-types.js';
import { SOAP, useArrivingSessions } from './support/arriving-sessions.js';
import { readFeed } from './support/read-feed.js';
import { deliver, signed } from './support/webhook-requests.js';

const world = useArrivingSessions();
const { newSession, toEnd, show, shownAs, read, heardAll, sql } = world;

/** All that was told, once nothing is pending: what an event changes is published after it was handled. */
const told = async () => {
  const pending = 'SELECT 1 FROM sessions WHERE pending_events_at IS NOT NULL';
  await until('nothing is pending', async () => (await sql(pending)).length === 0);
  return readFeed(world.service);
};

/** The types and the say on AI notes of what was told of a subject. */
const toldOf = async (subject: string) =>
  (await told()).filter((event) => event.subject === subject).map(({ type, data }) => [type, data.aiNotesEnabled]);

/** Sends an event as the platform does, until it is acknowledged and handled. */
async function say(body: WebhookEvent | string): Promise<void> {
  const { settings } = world.simulator.state;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const answer = await deliver(world.service, signed(text, { secret: settings.webhookSecret }));
  expect(answer.status).toBe(204);
  await heardAll();
}

const about = (sessionId: string, eventType: EventType, aiNotesEnabled: boolean | null) =>
  JSON.stringify({ eventType, sessionId, providerUserId: world.provider, aiNotesEnabled });

describe('where nothing can be fetched', () => {
  beforeAll(() => world.restart(['getSession', 'getProcessingSession', 'events']));
  afterAll(() => world.restart());

  /** What is sent, what is told of it, and the route that its subject names. */
  const bodies = (): Record<EventType, [body: string, type: string, subject: RegExp]> => ({
    SESSION_CREATED: [about('every-1', 'SESSION_CREATED', null), 'session.created', /^sessions\//],
    SESSION_PROCESSING_STARTED: [
      about('every-1', 'SESSION_PROCESSING_STARTED', true),
      'session.processing-started',
      /^sessions\//,
    ],
    SESSION_PROCESSING_NOTES_COMPLETED: [
      about('every-1', 'SESSION_PROCESSING_NOTES_COMPLETED', true),
      'session.notes-completed',
      /^sessions\//,
    ],
    SESSION_PROCESSING_COMPLETED: [
      about('every-1', 'SESSION_PROCESSING_COMPLETED', true),
      'session.completed',
      /^sessions\//,
    ],
    SESSION_PROCESSING_FAILED: [about('every-1', 'SESSION_PROCESSING_FAILED', true), 'session.failed', /^sessions\//],
    PROCESSING_SESSION_FINISHED: [
      JSON.stringify({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId: 'every/p' } }),
      'processing.finished',
      /^processing-sessions\/every%2Fp$/,
    ],
    PROCESSING_SESSION_NOTES_FINISHED: [
      JSON.stringify({ eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload: { of: { sessionId: 'phantom' } } }),
      'processing.notes-finished',
      /^processing-notices\//,
    ],
    COMPLIANCE_JOB_COMPLETED: [
      JSON.stringify({ eventType: 'COMPLIANCE_JOB_COMPLETED', payload: { jobId: 'every-c1' } }),
      'compliance.completed',
      /^compliance\/jobs\//,
    ],
    COMPLIANCE_JOB_FAILED: [
      JSON.stringify({ eventType: 'COMPLIANCE_JOB_FAILED', payload: { jobId: 'every-c2' } }),
      'compliance.failed',
      /^compliance\/jobs\//,
    ],
    SMART_EDIT_JOB_COMPLETED: [
      JSON.stringify({ eventType: 'SMART_EDIT_JOB_COMPLETED', payload: { jobId: 'every-s1' } }),
      'smart-edit.completed',
      /^smart-edit\/jobs\/every-s1$/,
    ],
    SMART_EDIT_JOB_FAILED: [
      JSON.stringify({ eventType: 'SMART_EDIT_JOB_FAILED', payload: { jobId: 'every-s2' } }),
      'smart-edit.failed',
      /^smart-edit\/jobs\/every-s2$/,
    ],
    USER_CREATED: [
      JSON.stringify({
        eventType: 'USER_CREATED',
        payload: { userId: 'every-u', externalUserId: 'u-7', role: 'OrgAdmin' },
      }),
      'user.created',
      /^people\/unknown-to-ehr$/,
    ],
  });

  it.each(EVENT_TYPES)('%s is an event of the feed, whose subject is a route that answers', async (eventType) => {
    const [body, type, subject] = bodies()[eventType];
    const before = (await told()).length;
    await say(body);
    const event = await until(`${type} is told`, async () =>
      (await told()).slice(before).find((candidate) => candidate.type === type),
    );
    expect(event.subject).toMatch(subject);
    expect(Object.hasOwn(event.data, 'aiNotesEnabled')).toBe(body.includes('aiNotesEnabled'));
    const answer = await world.service.call('GET', `/v1/${event.subject}`);
    expect([answer.status, answer.text.includes('every') || type.endsWith('notes-finished')]).toEqual([200, true]);
  });

  it('a session without AI notes is told to be completed, so that nobody waits for its notes', async () => {
    await say(about('no-notes', 'SESSION_CREATED', null));
    await say(about('no-notes', 'SESSION_PROCESSING_COMPLETED', false));
    const { id, state, stateFrom, aiNotesEnabled, aiNotesFinal } = await show('no-notes');
    expect([state, stateFrom, aiNotesEnabled, aiNotesFinal]).toEqual(['Done', 'events', false, true]);
    expect(await toldOf(`sessions/${id}`)).toEqual([
      ['session.created', null],
      ['session.completed', false],
    ]);
  });

  it('each making of notes is told, and changes when the session was updated; a repeated completion is told once', async () => {
    const body = about('again', 'SESSION_PROCESSING_NOTES_COMPLETED', true);
    await say(body);
    const first = await show('again');
    expect(first.lastEventAt).not.toBeNull();
    await say(body);
    const second = await show('again');
    expect(second.updatedAt > first.updatedAt).toBe(true);
    expect(second.lastEventAt).not.toBe(first.lastEventAt);
    await say(about('again', 'SESSION_PROCESSING_COMPLETED', true));
    await say(about('again', 'SESSION_PROCESSING_COMPLETED', true));
    const types = (await toldOf(`sessions/${first.id}`)).map(([type]) => type);
    expect([...new Set(types)]).toEqual(['session.created', 'session.notes-completed', 'session.completed']);
    expect(types.filter((type) => type === 'session.completed')).toHaveLength(1);
    // What is sent again, because its answer was late, may be told again.
    expect(types.filter((type) => type === 'session.notes-completed').length).toBeGreaterThanOrEqual(2);
  });

  it('every FAILED is told, although a session that was completed stays Done by its events', async () => {
    await say(about('failing', 'SESSION_PROCESSING_COMPLETED', true));
    await say(about('failing', 'SESSION_PROCESSING_FAILED', true));
    await say(about('failing', 'SESSION_PROCESSING_FAILED', true));
    const { id, state, stateFrom } = await show('failing');
    expect([state, stateFrom]).toEqual(['Done', 'events']);
    const failures = (await toldOf(`sessions/${id}`)).filter(([type]) => type === 'session.failed');
    expect(failures.length).toBeGreaterThanOrEqual(2);
  });

  it('a state in which an update left a session ends by an event', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await shownAs(session.sessionId, 'Done');
    const path = `/v1/sessions/${session.sessionId}`;
    const updated = await world.service.call('PATCH', path, { body: { noteTemplateIds: [SOAP] } });
    expect(updated.json()).toMatchObject({ state: 'Processing', stateFrom: 'platform' });
    toEnd(session);
    await shownAs(session.sessionId, 'Done');
    expect(await show(session.sessionId)).toMatchObject({ stateFrom: 'events' });
  });

  it('an event that the specification does not show names no session: it is kept, and told as it came', async () => {
    const body = { eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload: { a: { sessionId: 'nested' }, b: [1] } };
    await say(JSON.stringify(body));
    const event = await until('it is told', async () =>
      (await told()).findLast(({ type }) => type === 'processing.notes-finished'),
    );
    expect(event.data).toEqual({ sessionId: null, processingId: null });
    const notice = await world.service.call('GET', `/v1/${event.subject}`);
    expect(notice.json()).toMatchObject({ body, sessionId: null, processingId: null });
    expect((await world.service.call('GET', '/v1/sessions/nested')).status).toBe(404);
    expect((await world.service.call('GET', '/v1/processing-notices/none')).status).toBe(404);
    expect(await sql("SELECT 1 FROM sessions WHERE session_id IN ('nested', 'phantom')")).toEqual([]);
  });
});

describe('where everything can be fetched', () => {
  it('what PROCESSING_SESSION_FINISHED brought is read by the route that the feed names', async () => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    const { processingId } = session;
    await say({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId } });
    const event = (await told()).findLast(({ type }) => type === 'processing.finished');
    expect(event).toMatchObject({ subject: `processing-sessions/${processingId}`, data: { processingId } });
    const { id } = await show(session.sessionId);
    const result = await until('it was looked up', async () => {
      const now = (await world.service.call('GET', `/v1/${event?.subject}`)).json();
      return now.answer ? now : undefined;
    });
    expect(result).toMatchObject({ processingId, session: id, sessionId: session.sessionId, fault: null });
    expect(result.answer).toMatchObject({ processing: { id: processingId, sessionId: session.sessionId } });
    // It names its session: one UPDATE does not make it another's.
    const give = (to: string) => sql(`UPDATE processing_sessions SET session = '${to}' WHERE session IS NOT NULL`);
    const another = newSession();
    toEnd(another);
    await read(another, 1);
    await give((await show(another.sessionId)).id);
    const moved = await world.service.call('GET', `/v1/${event?.subject}`);
    expect([moved.status, moved.json().type]).toEqual([503, 'urn:notebridge:problem:data-unreadable']);
    await give(id);
    expect((await world.service.call('GET', '/v1/processing-sessions/none')).status).toBe(404);
  });

  it('a session says that its state is the platform’s once it was fetched', async () => {
    const session = newSession();
    await until('it was fetched', async () => (await show(session.sessionId)).stateFrom === 'platform');
    toEnd(session);
    await read(session, 1);
    await shownAs(session.sessionId, 'Done');
    expect(await show(session.sessionId)).toMatchObject({ stateFrom: 'platform' });
  });

  it('the notes are told twice: that they were made, and that they can be read', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await read(session, 1);
    beginRegeneration(world.simulator.state, session, [SOAP]);
    takeStep(world.simulator.state, session);
    await read(session, 2);
    await heardAll(); // notes may be fetched before their event is handled
    const { id } = await show(session.sessionId);
    const count = async (type: string) => (await toldOf(`sessions/${id}`)).filter(([kind]) => kind === type).length;
    await until('both are told', async () => (await count('session.notes-ready')) === 2);
    expect(await count('session.notes-completed')).toBeGreaterThanOrEqual(2);
  });

  it('USER_CREATED of somebody whom the EHR named is told under that name', async () => {
    await say({ eventType: 'USER_CREATED', payload: { userId: world.client, externalUserId: 'c-1', role: 'Client' } });
    const event = (await told()).findLast(({ type }) => type === 'user.created');
    expect(event).toMatchObject({ subject: 'clients/c-1', data: { userId: world.client, role: 'Client' } });
  });

  it('every type of the feed stands in OpenAPI', async () => {
    const openapi = (await world.service.call('GET', '/openapi.json')).text;
    for (const type of Object.keys(FEED_TYPES)) expect(openapi).toContain(`"${type}"`);
  });
});
