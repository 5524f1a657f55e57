import { takeStep } from '../../simulator/sessions/session-run.js';
import type { FeedEventResponse, FeedPageResponse } from '../../src/feed/feed.dto.js';
import type { NotesResponse, SessionResponse } from '../../src/sessions/model/session-view.js';
import type { FeedType } from '../../src/words/feed-types.js';
import { useArrivingSessions } from '../sessions/arriving-sessions.js';
import { contractFile } from '../support/contract-file.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { publishedIn } from './published.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { newSession, toEnd } = sessions;
const { published, shown } = publishedIn(world);

type SessionEvent = Extract<FeedType, `session.${string}`>;

const WISH = { provider: 'p-1', client: 'c-1', noteTemplateIds: [SOAP], input: { text: { text: 'Slept better.' } } };

/** Requests a session, and does not wait for the platform. */
const request = async (more: object = {}) =>
  (await world.call<SessionResponse>('POST', '/v1/sessions', { body: { ...WISH, ...more }, wait: 0 })).body;
const failCreate = (kind: 'commit-then-cut' | 'status') =>
  world.platform.injectFault({ operation: 'createSession', kind, status: 400 });

/** A session of the platform whose creation was handled. */
async function knownSession(more: Partial<ReturnType<typeof newSession>> = {}) {
  const session = Object.assign(newSession(), more);
  await world.settle();
  return session;
}

const step = (session: ReturnType<typeof newSession>) => takeStep(world.platform.simulator.state, session);
const sessionOf = ({ subject }: FeedEventResponse) => shown<SessionResponse>(subject);

/** Expects a session that ran to its end to publish no event of this type. */
async function neverPublished(type: SessionEvent): Promise<void> {
  const session = await knownSession();
  toEnd(session);
  await world.settle();
  const { items } = await shown<FeedPageResponse>('events?after=0&limit=200');
  const types = items.map((event) => event.type);
  expect(types).toContain('session.completed');
  expect(types).not.toContain(type);
}

/**
 * Provokes each event, and reads what `shows` of its type says once it is published.
 *
 * @param canFetch false if the contract has no `getSession`, so that only events tell about sessions
 */
const SCENARIOS: Record<SessionEvent, (canFetch: boolean) => Promise<void>> = {
  'session.created': async () => {
    let sessionId = '';
    const recorded = await published('session.created', () => {
      ({ sessionId } = newSession());
    });
    expect(await sessionOf(recorded)).toMatchObject({ sessionId, state: 'InProgress' });
    let id = '';
    const requested = await published('session.created', async () => {
      ({ id } = await request());
    });
    expect(requested.subject).toBe(`sessions/${id}`);
    expect(await sessionOf(requested)).toMatchObject({ sessionId: requested.data.sessionId, state: 'InProgress' });
  },

  'session.merged': async () => {
    world.platform.set({ webhookDropRate: 1 });
    failCreate('commit-then-cut');
    const { id } = await request();
    await world.settle();
    world.platform.set({ webhookDropRate: 0 });
    const sessionId = world.platform.simulator.state.sessions.list().at(-1)?.sessionId ?? '';
    const created = await published('session.created', () =>
      sessions.tell({
        eventType: 'SESSION_CREATED',
        sessionId,
        providerUserId: sessions.provider,
        aiNotesEnabled: null,
      }),
    );
    const { data } = await published('session.merged', () =>
      world.call('POST', `/v1/sessions/${id}/resolve`, { body: { action: 'link', sessionId }, wait: 0 }),
    );
    const into = created.subject.replace('sessions/', '');
    expect(data).toMatchObject({ id, into });
    for (const either of [id, into]) expect(await shown(`sessions/${either}`)).toMatchObject({ id: into, sessionId });
    const { items } = await shown<{ items: SessionResponse[] }>('sessions');
    expect(items.map((each) => each.id)).toEqual([into]);
  },

  'session.processing-started': async () => {
    const session = await knownSession();
    const started = await published('session.processing-started', () => step(session));
    expect(await sessionOf(started)).toMatchObject({ sessionId: session.sessionId, state: 'Processing' });
  },

  'session.notes-ready': async (canFetch) => {
    if (!canFetch) return neverPublished('session.notes-ready');
    const session = await knownSession();
    step(session);
    const { subject, data } = await published('session.notes-ready', () => step(session));
    const { notesRevision, documents } = await shown<NotesResponse>(`${subject}/notes`);
    expect(notesRevision).toBe(data.notesRevision);
    expect(documents.flatMap(({ notes }) => notes)).not.toEqual([]);
  },

  'session.transcript-ready': async (canFetch) => {
    if (!canFetch) return neverPublished('session.transcript-ready');
    const session = await knownSession({ aiNotes: false });
    const { subject } = await published('session.transcript-ready', () => toEnd(session));
    const { utterances } = await shown<{ utterances: unknown[] }>(`${subject}/transcript`);
    expect(utterances).not.toEqual([]);
  },

  'session.completed': async (canFetch) => {
    for (const aiNotes of [true, false]) {
      const session = await knownSession({ aiNotes });
      const completed = await published('session.completed', () => toEnd(session));
      expect(completed.data).toMatchObject({ sessionId: session.sessionId, aiNotesEnabled: aiNotes });
      const end = { state: 'Done', aiNotesEnabled: aiNotes, aiNotesFinal: true };
      expect(await sessionOf(completed)).toMatchObject({ ...end, stateFrom: canFetch ? 'platform' : 'events' });
    }
  },

  'session.failed': async (canFetch) => {
    const session = await knownSession({ willFail: true });
    const failed = await published('session.failed', () => toEnd(session));
    expect(await sessionOf(failed)).toMatchObject({
      sessionId: session.sessionId,
      state: 'Error',
      ...(canFetch && { error: { code: 'low-content-transcript' } }),
    });
    failCreate('status');
    const rejected = await published('session.failed', () => request());
    const error = { code: rejected.data.code };
    expect(await sessionOf(rejected)).toMatchObject({ state: 'Rejected', error });
  },

  'session.needs-review': async () => {
    world.platform.set({ webhookDropRate: 1 });
    failCreate('commit-then-cut');
    const unknown = await published('session.needs-review', () => request());
    const { state, choices } = await sessionOf(unknown);
    expect([state, choices.map(({ action }) => action)]).toEqual(['Unknown', ['link', 'create', 'abandon']]);
  },
};

const EACH = Object.entries(SCENARIOS);

describe('with getSession in the contract', () => {
  test.each(EACH)('%s is published once a GET shows what it says', (_type, scenario) => scenario(true));

  test('session.failed without an answer follows the event by ten minutes, and again with the code', async () => {
    const session = await knownSession({ willFail: true });
    world.platform.injectFault({ operation: 'getSession', kind: 'status', status: 500, count: null });
    toEnd(session);
    await world.settle();
    const failed = await published('session.failed', () => world.advance('10 min'));
    expect(await sessionOf(failed)).toMatchObject({ state: 'Error', stateFrom: 'events' });
    world.platform.release();
    const again = await published('session.failed', () => world.advance('1 h'));
    expect(again.data.code).toBe('low-content-transcript');
    expect(await sessionOf(again)).toMatchObject({ state: 'Error', error: { code: 'low-content-transcript' } });
  });
});

describe('without getSession in the contract', () => {
  beforeEach(() => world.restart({ PLATFORM_CONTRACT: contractFile(['getSession', 'getProcessingSession']) }));

  test.each(EACH)('%s is published once a GET shows what it says, or never', (_type, scenario) => scenario(false));
});
