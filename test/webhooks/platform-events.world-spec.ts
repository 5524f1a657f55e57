import { beginRegeneration, takeStep } from '../../simulator/sessions/session-run.js';
import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import { FEED_TYPES } from '../../src/feed/feed.js';
import type { Page } from '../../src/http/request/page.js';
import { EVENT_TYPES, type EventType } from '../../src/platform/contract/wire-types.js';
import { useArrivingSessions } from '../sessions/arriving-sessions.js';
import { contractFile } from '../support/contract-file.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { newSession, toEnd, show, read } = sessions;

/** The events of the feed, oldest first. */
const feed = async () => (await world.call<Page<FeedEventResponse>>('GET', '/v1/events?limit=200&after=0')).body.items;
const newest = async (type: string) => (await feed()).findLast((event) => event.type === type);
/** Type and AI notes of the events about a session. */
const feedOf = async (sessionId: string) => {
  const { id } = await show(sessionId);
  return (await feed())
    .filter(({ subject }) => subject === `sessions/${id}`)
    .map(({ type, data }) => [type, data.aiNotesEnabled]);
};

/** Delivers an event and has it handled. */
async function tell(event: object): Promise<void> {
  world.platform.simulator.state.deliveries.send(event as never);
  await world.settle();
}
const ofSession = (sessionId: string, eventType: EventType, aiNotesEnabled: boolean | null) => ({
  eventType,
  sessionId,
  providerUserId: sessions.provider,
  aiNotesEnabled,
});

describe('where nothing can be fetched', () => {
  let contract: string;
  beforeAll(async () => {
    contract = await contractFile(['getSession', 'getProcessingSession', 'getComplianceJob', 'events']);
  });
  beforeEach(() => world.restart({ PLATFORM_CONTRACT: contract }));

  test('each event of the platform is in the feed; its subject is a route, except for smart edits', async () => {
    const user = { userId: 'every-u', externalUserId: 'u-7', role: 'OrgAdmin' };
    const cases: Record<EventType, [type: string, subject: RegExp, payload?: object]> = {
      SESSION_CREATED: ['session.created', /^sessions\//],
      SESSION_PROCESSING_STARTED: ['session.processing-started', /^sessions\//],
      SESSION_PROCESSING_NOTES_COMPLETED: ['session.notes-completed', /^sessions\//],
      SESSION_PROCESSING_COMPLETED: ['session.completed', /^sessions\//],
      SESSION_PROCESSING_FAILED: ['session.failed', /^sessions\//],
      PROCESSING_SESSION_FINISHED: [
        'processing.finished',
        /^processing-sessions\/every%2Fp$/,
        { processingId: 'every/p' },
      ],
      PROCESSING_SESSION_NOTES_FINISHED: [
        'processing.notes-finished',
        /^webhook-deliveries\/\d+$/,
        { of: { sessionId: 'every' } },
      ],
      COMPLIANCE_JOB_COMPLETED: ['compliance.completed', /^compliance\/jobs\//, { jobId: 'every-c1' }],
      COMPLIANCE_JOB_FAILED: ['compliance.failed', /^compliance\/jobs\//, { jobId: 'every-c2' }],
      SMART_EDIT_JOB_COMPLETED: ['smart-edit.completed', /^smart-edit\/jobs\/every-s1$/, { jobId: 'every-s1' }],
      SMART_EDIT_JOB_FAILED: ['smart-edit.failed', /^smart-edit\/jobs\/every-s2$/, { jobId: 'every-s2' }],
      USER_CREATED: ['user.created', /^people\/unknown-to-ehr$/, user],
    };
    for (const eventType of EVENT_TYPES) {
      const [type, subject, payload] = cases[eventType];
      const before = (await feed()).length;
      await tell(payload ? { eventType, payload } : ofSession('every-1', eventType, true));
      const event = (await feed()).slice(before).find((candidate) => candidate.type === type);
      expect([eventType, event?.subject]).toEqual([eventType, expect.stringMatching(subject)]);
      expect(Object.hasOwn(event?.data ?? {}, 'aiNotesEnabled')).toBe(payload === undefined);
      if (type.startsWith('smart-edit')) continue;
      const answer = await world.call('GET', `/v1/${event?.subject}`);
      const mark = type === 'processing.notes-finished' ? eventType : 'every';
      expect([type, answer.status, answer.text]).toEqual([type, 200, expect.stringContaining(mark)]);
    }
  });

  test('a session without AI notes is completed with its AI notes final', async () => {
    await tell(ofSession('no-notes', 'SESSION_CREATED', null));
    await tell(ofSession('no-notes', 'SESSION_PROCESSING_COMPLETED', false));
    expect(await show('no-notes')).toMatchObject({
      state: 'Done',
      stateFrom: 'events',
      aiNotesEnabled: false,
      aiNotesFinal: true,
    });
    expect(await feedOf('no-notes')).toEqual([
      ['session.created', null],
      ['session.completed', false],
    ]);
  });

  test('notes completed again are told again and update the session; a repeated completion is told once', async () => {
    const completed = () => tell(ofSession('again', 'SESSION_PROCESSING_NOTES_COMPLETED', true));
    await completed();
    const first = await show('again');
    expect(first.lastEventAt).not.toBeNull();
    await completed();
    const second = await show('again');
    expect(second.updatedAt > first.updatedAt).toBe(true);
    expect(second.lastEventAt).not.toBe(first.lastEventAt);
    for (const _time of [1, 2]) await tell(ofSession('again', 'SESSION_PROCESSING_COMPLETED', true));
    expect((await feedOf('again')).map(([type]) => type)).toEqual([
      'session.created',
      'session.notes-completed',
      'session.notes-completed',
      'session.completed',
    ]);
  });

  test('a failure is published once, although a completed session stays Done by its events', async () => {
    await tell(ofSession('failing', 'SESSION_PROCESSING_COMPLETED', true));
    for (const _time of [1, 2]) await tell(ofSession('failing', 'SESSION_PROCESSING_FAILED', true));
    expect(await show('failing')).toMatchObject({ state: 'Done', stateFrom: 'events' });
    expect((await feedOf('failing')).filter(([type]) => type === 'session.failed')).toHaveLength(1);
  });

  test('an event ends the state that an update left', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await world.settle();
    const path = `/v1/sessions/${session.sessionId}`;
    const updated = await world.call('PATCH', path, { body: { noteTemplateIds: [SOAP] } });
    expect(updated.body).toMatchObject({ state: 'Processing', stateFrom: 'platform' });
    toEnd(session);
    await world.settle();
    expect(await show(session.sessionId)).toMatchObject({ state: 'Done', stateFrom: 'events' });
  });

  test('an event of an undocumented shape names no session, but its delivery', async () => {
    const body = { eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload: { a: { sessionId: 'nested' }, b: [1] } };
    await tell(body);
    const event = await newest('processing.notes-finished');
    expect(event?.data).toEqual({ sessionId: null, processingId: null });
    const { body: delivery } = await world.call('GET', `/v1/${event?.subject}`);
    expect(delivery).toMatchObject({ eventType: body.eventType, state: 'processed' });
    expect((await world.call('GET', '/v1/sessions/nested')).status).toBe(404);
    expect(await world.sql('SELECT 1 FROM sessions')).toEqual([]);
  });
});

describe('where everything can be fetched', () => {
  const finished = async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await read(session, 1);
    return { session, id: (await show(session.sessionId)).id };
  };

  test('the result of PROCESSING_SESSION_FINISHED is read by the route that the feed names', async () => {
    const { session, id } = await finished();
    const { processingId, sessionId } = session;
    await tell({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId } });
    const event = await newest('processing.finished');
    expect(event).toMatchObject({ subject: `processing-sessions/${processingId}`, data: { processingId } });
    const path = `/v1/${event?.subject}`;
    expect((await world.call('GET', path)).body).toMatchObject({
      processingId,
      session: id,
      sessionId,
      fault: null,
      answer: { processing: { id: processingId, sessionId } },
    });
    expect((await world.call('GET', '/v1/processing-sessions/none')).status).toBe(404);
  });

  test('a fetched session has its state from the platform, before its end and after', async () => {
    const session = newSession();
    await world.settle();
    expect((await show(session.sessionId)).stateFrom).toBe('platform');
    toEnd(session);
    await world.settle();
    expect(await show(session.sessionId)).toMatchObject({ state: 'Done', stateFrom: 'platform' });
  });

  test('notes are told when they are completed, and again when they can be read', async () => {
    const { session } = await finished();
    beginRegeneration(world.platform.simulator.state, session, [SOAP]);
    takeStep(world.platform.simulator.state, session);
    await read(session, 2);
    const types = (await feedOf(session.sessionId)).map(([type]) => type);
    expect(types.filter((type) => type === 'session.notes-completed')).toHaveLength(2);
    expect(types.filter((type) => type === 'session.notes-ready')).toHaveLength(2);
  });

  test('USER_CREATED of a person of the EHR is told under its external id', async () => {
    const [user] = world.platform.simulator.state.users.list().filter(({ role }) => role === 'Client');
    const userId = user?.userId;
    await tell({ eventType: 'USER_CREATED', payload: { userId, externalUserId: 'c-1', role: 'Client' } });
    expect(await newest('user.created')).toMatchObject({ subject: 'clients/c-1', data: { userId, role: 'Client' } });
  });

  test('OpenAPI describes every type of the feed', async () => {
    const { text } = await world.call('GET', '/openapi.json');
    for (const type of Object.keys(FEED_TYPES)) expect(text).toContain(`"${type}"`);
  });
});
