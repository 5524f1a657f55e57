import { EVENT_TYPES, type EventType } from '../../src/platform/contract/wire-types.js';
import { useArrivingSessions } from '../sessions/arriving-sessions.js';
import { contractFile } from '../support/contract-file.js';
import { useWorld } from '../world/use-world.js';
import { deliveredEvents } from './delivered-events.js';

/** Without fetch operations, the service learns only from events. */
const world = useWorld({
  settings: {
    PLATFORM_TIMEOUT_SECONDS: '60',
    PLATFORM_CONTRACT: contractFile(['getSession', 'getProcessingSession', 'getComplianceJob', 'events']),
  },
  platform: { processingEvents: false },
});
const sessions = useArrivingSessions(world);
const { show } = sessions;
const { feed, newest, feedOf, deliver } = deliveredEvents(world);

const ofSession = (sessionId: string, eventType: EventType, aiNotesEnabled: boolean | null) => ({
  eventType,
  sessionId,
  providerUserId: sessions.provider,
  aiNotesEnabled,
});

test('each event of the platform is in the feed; its subject is a route, except for smart edits', async () => {
  const user = { userId: 'every-u', externalUserId: 'u-7', role: 'OrgAdmin' };
  const cases: Record<EventType, [type: string | undefined, subject: RegExp, payload?: object]> = {
    SESSION_CREATED: ['session.created', /^sessions\//],
    SESSION_PROCESSING_STARTED: ['session.processing-started', /^sessions\//],
    SESSION_PROCESSING_NOTES_COMPLETED: [undefined, /^sessions\//], // without a fetch, no GET shows notes
    SESSION_PROCESSING_COMPLETED: ['session.completed', /^sessions\//],
    SESSION_PROCESSING_FAILED: [undefined, /^sessions\//], // it is Done, and stays so by its events
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
    await deliver(payload ? { eventType, payload } : ofSession('every-1', eventType, true));
    if (type === undefined) {
      expect(await feed()).toHaveLength(before);
      continue;
    }
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
  await deliver(ofSession('no-notes', 'SESSION_CREATED', null));
  await deliver(ofSession('no-notes', 'SESSION_PROCESSING_COMPLETED', false));
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

test('an event updates the session, and its end is published once', async () => {
  const completed = () => deliver(ofSession('again', 'SESSION_PROCESSING_NOTES_COMPLETED', true));
  await completed();
  const first = await show('again');
  expect(first.lastEventAt).not.toBeNull();
  await completed();
  const second = await show('again');
  expect(second.updatedAt > first.updatedAt).toBe(true);
  expect(second.lastEventAt).not.toBe(first.lastEventAt);
  for (const _time of [1, 2]) await deliver(ofSession('again', 'SESSION_PROCESSING_COMPLETED', true));
  expect((await feedOf('again')).map(([type]) => type)).toEqual([
    'session.created',
    'session.processing-started',
    'session.completed',
  ]);
});

test('a failure is published once, and so is the end of a later attempt; a completed session stays Done', async () => {
  for (const _time of [1, 2]) await deliver(ofSession('failing', 'SESSION_PROCESSING_FAILED', true));
  expect(await show('failing')).toMatchObject({ state: 'Error', stateFrom: 'events' });
  await deliver(ofSession('failing', 'SESSION_PROCESSING_COMPLETED', true));
  await deliver(ofSession('failing', 'SESSION_PROCESSING_FAILED', true));
  expect(await show('failing')).toMatchObject({ state: 'Done', stateFrom: 'events' });
  expect((await feedOf('failing')).map(([type]) => type)).toEqual([
    'session.created',
    'session.failed',
    'session.completed',
  ]);
});

test('an event of an undocumented shape names no session, but its delivery', async () => {
  const body = { eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload: { a: { sessionId: 'nested' }, b: [1] } };
  await deliver(body);
  const event = await newest('processing.notes-finished');
  expect(event?.data).toEqual({ sessionId: null, processingId: null });
  const { body: delivery } = await world.call('GET', `/v1/${event?.subject}`);
  expect(delivery).toMatchObject({ eventType: body.eventType, state: 'processed' });
  expect((await world.call('GET', '/v1/sessions/nested')).status).toBe(404);
  expect(await world.sql('SELECT 1 FROM sessions')).toEqual([]);
});
