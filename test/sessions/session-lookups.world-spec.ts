import { beginRegeneration } from '../../simulator/sessions/session-run.js';
import { ProcessingRefresher } from '../../src/sessions/refresh/processing-refresher.js';
import { SessionRefresher } from '../../src/sessions/refresh/refresh.repository.js';
import { RefreshScheduler } from '../../src/sessions/refresh/refresh-scheduler.repository.js';
import { statementsOf } from '../support/statements.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { useArrivingSessions } from './arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { show, shownAs, notesOf, read, refresh, regenerate, fetchAnother, fetches, tell, unheard } = sessions;

const rows = () =>
  world.sql(`SELECT *, due_at - now() < interval '1 minute' AS soon FROM sessions ORDER BY created_at, id`);
const done = () => {
  const session = sessions.newSession({ noteTemplateIds: [SOAP] });
  sessions.toEnd(session);
  return session;
};
/** Longer than each of the first waits. */
async function later(times: number): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    await world.advance('1 h');
    await world.settle();
  }
}

describe('a session that the platform does not know', () => {
  it('is looked up again while it is new, and does not count as gone', async () => {
    world.platform.set({ hiddenLookUps: 3 });
    const session = done();
    await world.settle();
    await later(1);
    expect([session.lookUps, (await show(session.sessionId)).goneAt]).toEqual([2, null]);
    await later(2);
    await read(session, 1);
    expect(await rows()).toMatchObject([{ fault: null, failures: 0, not_found_at: null }]);
  });

  it('counts as gone if it was there before, and is read again when it is back', async () => {
    const session = done();
    await read(session, 1);
    world.platform.set({ hiddenLookUps: session.lookUps + 3 });
    await refresh(session);
    expect((await shownAs(session.sessionId, 'Done')).goneAt).toBeNull();
    await fetchAnother();
    expect((await shownAs(session.sessionId, 'Done')).goneAt).not.toBeNull();
    await later(3);
    expect((await shownAs(session.sessionId, 'Done')).goneAt).toBeNull();
  });

  it('is looked up as soon as an event names it, even during a long wait', async () => {
    const session = done();
    await read(session, 1);
    world.platform.simulator.state.sessions.remove(session);
    await refresh(session);
    await fetchAnother();
    await later(8);
    const [before] = await rows();
    expect(before).toMatchObject({ fault: 'gone', soon: false });
    const [{ sessionId }, providerUserId] = [session, sessions.provider];
    tell({ eventType: 'SESSION_PROCESSING_NOTES_COMPLETED', sessionId, providerUserId, aiNotesEnabled: true });
    await world.settle();
    expect((await rows())[0]).toMatchObject({ failures: Number(before?.failures) + 1 });
  });

  it.each(['gone', 'maybe-gone'])('is looked up soon after an event while it is %s', async (fault) => {
    const session = done();
    await read(session, 1);
    const wait = `fault = $1, failures = 9, due_at = now() + interval '1 day'`;
    await world.sql(`UPDATE sessions SET ${wait}`, [fault]);
    const before = fetches();
    const [{ sessionId }, providerUserId] = [session, sessions.provider];
    tell({ eventType: 'SESSION_PROCESSING_NOTES_COMPLETED', sessionId, providerUserId, aiNotesEnabled: true });
    await world.settle();
    await world.advance('1 s');
    await world.settle();
    expect(fetches()).toBe(before + 1);
  });

  it('does not count as gone while the platform answers 404 to everything', async () => {
    const session = done();
    await read(session, 1);
    world.platform.set({ hiddenLookUps: 1_000 });
    await refresh(session);
    await later(30);
    expect((await shownAs(session.sessionId, 'Done')).goneAt).toBeNull();
    expect(await rows()).toMatchObject([{ fault: 'maybe-gone' }]);
  });

  it('is looked up again by its processing id', async () => {
    world.platform.set({ hiddenLookUps: 2 });
    const session = unheard(done);
    tell({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId: session.processingId } });
    await world.settle();
    await later(4);
    expect((await notesOf(session.sessionId)).documents).toHaveLength(1);
  });

  it('keeps the session of its processing id when a later answer names another one', async () => {
    const [session, other] = [unheard(done), unheard(done)];
    const announce = (attempt: number) =>
      tell({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId: session.processingId, attempt } });
    announce(1);
    await world.settle();
    const linked = () => world.sql('SELECT session, fault FROM processing_sessions');
    const [{ session: ours } = {}] = await linked();
    const body = { processing: { sessionId: other.sessionId } };
    world.platform.injectFault({ operation: 'getProcessingSession', kind: 'answer', count: 1, body });
    await world.advance('1 h');
    announce(2);
    await world.settle();
    await world.advance('1 s');
    await world.settle();
    expect(await linked()).toEqual([{ session: ours, fault: 'unreadable-answer' }]);
    await world.advance('1 min');
    await world.settle();
    expect(await linked()).toEqual([{ session: ours, fault: null }]);
  });
});

describe('the limits of lookups', () => {
  /** Handles all events without fetching. An event whose session is locked is due again later. */
  async function handleEvents(): Promise<void> {
    await world.platform.webhooksSent();
    do {
      await world.work.inbox();
      await world.advance('1 s');
    } while ((await world.sql('SELECT 1 FROM webhook_deliveries WHERE due_at IS NOT NULL')).length > 0);
  }

  it('allow two for processing ids, which never delay notes', async () => {
    world.platform.hold({ operation: 'getProcessingSession', count: null });
    for (const { processingId } of Array.from({ length: 4 }, () => unheard(done))) {
      tell({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId } });
    }
    await handleEvents();
    world.get(ProcessingRefresher).trigger();
    await world.untilCalled('getProcessingSession', 1);
    const session = done();
    await handleEvents();
    await world.get(SessionRefresher).run();
    expect((await notesOf(session.sessionId)).documents).toHaveLength(1);
    expect(world.platform.arrivals('getProcessingSession')).toBe(2);
    world.platform.release();
    await world.get(ProcessingRefresher).finished();
  });

  it('reserve one for sessions with events during a bulk refresh', async () => {
    const old = Array.from({ length: 6 }, done);
    await world.settle();
    const before = fetches();
    world.platform.hold({ operation: 'getSession', count: 3 });
    await world.call('POST', '/v1/sessions/refreshes', { body: { since: '2026-01-01' } });
    const refresher = world.get(SessionRefresher);
    refresher.trigger();
    await world.untilCalled('getSession', before + 2);
    const recent = [done(), done()];
    await handleEvents();
    await refresher.run();
    for (const { sessionId } of recent) expect((await notesOf(sessionId)).documents).toHaveLength(1);
    const waiting = 'SELECT 1 FROM sessions WHERE lane = 1 AND lease_owner IS NULL';
    expect(await world.sql(waiting)).toHaveLength(old.length - 3);
    world.platform.release();
    await refresher.finished();
    await world.settle();
    expect(await world.sql('SELECT 1 FROM sessions WHERE lane = 1')).toEqual([]);
  });

  it('let a bulk refresh schedule in batches, after sessions with events', async () => {
    await world.sql(
      `INSERT INTO sessions (id, shown_id, session_id, state, updated_at, due_at, wanted_generation)
       SELECT id, id, 'bulk-' || n, 'Done', '2031-01-01', CASE WHEN n = 1 THEN now() END, 1
       FROM (SELECT n, gen_random_uuid() AS id FROM generate_series(1, 1200) n) AS made`,
    );
    const statements = await statementsOf(['sessions'], async () => {
      expect(await world.get(RefreshScheduler).scheduleRefreshesSince(new Date('2030-12-31'))).toBe(1_200);
    });
    const sizes = statements.flatMap(({ values }) => (Array.isArray(values[0]) ? [values[0].length] : []));
    expect(sizes).toEqual([500, 500, 200]);
    const lanes = await world.sql(
      `SELECT session_id = 'bulk-1' AS announced, array_agg(DISTINCT lane) AS lanes FROM sessions GROUP BY 1 ORDER BY 1`,
    );
    expect(lanes).toEqual([
      { announced: false, lanes: [1] },
      { announced: true, lanes: [0] },
    ]);
  });
});

describe('a session that is processed again', () => {
  it('is looked up soon a month after its end, until its notes are stored', async () => {
    const session = done();
    await read(session, 1);
    await world.advance('30 d');
    unheard(() => beginRegeneration(world.platform.simulator.state, session, [SOAP]));
    await refresh(session);
    await shownAs(session.sessionId, 'Processing');
    expect(await rows()).toMatchObject([{ soon: true }]);
    unheard(() => sessions.toEnd(session));
    await world.advance('1 min');
    await read(session, 2);
    expect(await rows()).toMatchObject([{ reopened_at: null }]);
  });

  it('keeps its notes if it fails', async () => {
    const session = done();
    const before = await read(session, 1);
    world.platform.set({ regenerationFailureRate: 1 });
    regenerate(session);
    await shownAs(session.sessionId, 'Error');
    expect((await notesOf(session.sessionId)).documents).toEqual(before.documents);
  });
});
