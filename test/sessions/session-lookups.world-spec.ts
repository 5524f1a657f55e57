import { beginRegeneration } from '../../simulator/sessions/session-run.js';
import { PlatformClient } from '../../src/platform/clients/platform-client.js';
import { RefreshesRepository } from '../../src/sessions/fetch/refreshes.repository.js';
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
    expect((await rows())[0]).toMatchObject({ fault: 'gone', failures: 1 }); // looked up once since the event
  });

  it.each(['gone', 'maybe-gone'])('is looked up soon after an event while it is %s', async (fault) => {
    const session = done();
    await read(session, 1);
    const wait = `fault = $1, failures = 9, not_found_at = now(), retry_at = now() + interval '1 day', due_at = now() + interval '1 day'`;
    await world.sql(`UPDATE sessions SET ${wait}`, [fault]);
    const before = fetches();
    const [{ sessionId }, providerUserId] = [session, sessions.provider];
    tell({ eventType: 'SESSION_PROCESSING_NOTES_COMPLETED', sessionId, providerUserId, aiNotesEnabled: true });
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

describe('a refresh of all sessions', () => {
  it('fetches them after sessions with events', async () => {
    const old = Array.from({ length: 6 }, done);
    await world.settle();
    await world.advance('1 min');
    const order: string[] = [];
    const client = world.get(PlatformClient);
    const get = client.getSession.bind(client);
    jest.spyOn(client, 'getSession').mockImplementation((sessionId, options) => {
      order.push(sessionId);
      return get(sessionId, options);
    });
    expect(await world.get(RefreshesRepository).since(new Date('2026-01-01'))).toBe(old.length);
    const recent = done();
    await world.platform.webhooksSent();
    await world.work.inbox();
    await world.work.nextJob();
    expect(order).toEqual([recent.sessionId]);
    await world.settle();
    expect([...new Set(order)].sort()).toEqual([...old, recent].map(({ sessionId }) => sessionId).sort());
  });

  it('counts and fetches more than one batch', async () => {
    await world.sql(
      `INSERT INTO sessions (id, session_id, state, updated_at)
       SELECT gen_random_uuid(), 'bulk-' || n, 'Done', '2031-01-01' FROM generate_series(1, 1200) n`,
    );
    expect(await world.get(RefreshesRepository).since(new Date('2030-12-31'))).toBe(1_200);
    const { body } = await world.call<object>('GET', '/v1/sessions/refreshes');
    expect(body).toEqual({ pending: 1_200, failing: 0 });
  });
});

describe('a session that is given up', () => {
  const nextStep = async (id: string) => (await show(id)).nextStep;
  /** Lets time pass, in steps. */
  async function pass(days: number): Promise<void> {
    for (let day = 0; day < days; day += 1) {
      await world.advance('1 d');
      await world.settle();
    }
  }

  it('has answered 404 for seven days; a refresh fetches it again', async () => {
    const session = done();
    await read(session, 1);
    world.platform.simulator.state.sessions.remove(session);
    await refresh(session);
    await fetchAnother();
    await pass(8);
    expect(await nextStep(session.sessionId)).toMatchObject({
      what: 'none',
      why: expect.stringContaining('seven days'),
    });
    const before = fetches(404);
    await pass(8);
    expect(fetches(404)).toBe(before);
    await refresh(session);
    await world.settle();
    expect(fetches(404)).toBe(before + 1);
    expect(await nextStep(session.sessionId)).toMatchObject({ what: 'none' });
  });

  it('has not ended for thirty days; an event fetches it again', async () => {
    const session = sessions.newSession({ noteTemplateIds: [SOAP] });
    await world.settle();
    await pass(32);
    expect(await nextStep(session.sessionId)).toMatchObject({
      what: 'none',
      why: expect.stringContaining('thirty days'),
    });
    const before = fetches();
    await pass(3);
    expect(fetches()).toBe(before);
    sessions.toEnd(session);
    await read(session, 1);
    expect((await show(session.sessionId)).state).toBe('Done');
  }, 60_000);
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
