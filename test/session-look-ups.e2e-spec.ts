import { until } from '../harness/until.js';
import { beginRegeneration, takeStep } from '../simulator/sessions/session-run.js';
import type { Settings } from '../simulator/settings.js';
import { WantedRefreshes } from '../src/sessions/refresh/wanted-refreshes.repository.js';
import { SOAP, useArrivingSessions } from './support/arriving-sessions.js';
import { callSimulator } from './support/simulator-call.js';
import { statementsOf } from './support/statements.js';

const world = useArrivingSessions({ PLATFORM_TIMEOUT_SECONDS: '60' });
const { newSession, toEnd, show, shownAs, notesOf, read, refresh, heardAll, hurry, sql } = world;

const change = (settings: Partial<Settings>) => {
  world.simulator.state.settings = { ...world.simulator.state.settings, ...settings };
};
const order = (rule: object) => callSimulator(world.simulator, 'POST', '/_simulator/faults', [rule]);
/** Every call that the platform holds back is answered, and no more are. */
const release = async () => {
  await callSimulator(world.simulator, 'DELETE', '/_simulator/faults');
  world.simulator.state.timers.cancelAll();
};
const arrivals = (wanted: string) =>
  world.simulator.state.arrivals.list().filter(({ operation }) => operation === wanted).length;
/** Makes look-ups due as they come, until something is there. */
const hurryUntil = <T>(what: string, look: () => Promise<T>) =>
  until(what, async () => {
    await hurry();
    await sql('UPDATE processing_sessions SET due_at = clock_timestamp() WHERE due_at > clock_timestamp()');
    return look();
  });
const rowOf = async ({ sessionId }: { sessionId: string }) => {
  const text = `SELECT *, due_at - now() < interval '1 minute' AS soon FROM sessions WHERE session_id = $1`;
  return (await sql(text, [sessionId]))[0];
};

describe('a session that the platform does not know', () => {
  afterEach(() => change({ hiddenLookUps: 0 }));

  it('just after it was made is asked for again until it is there, and does not count as gone meanwhile', async () => {
    change({ hiddenLookUps: 3 });
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await heardAll();
    await hurryUntil('it was asked for', async () => session.lookUps > 1);
    expect((await show(session.sessionId)).goneAt).toBeNull();
    await hurryUntil('its notes are there', async () => (await notesOf(session.sessionId)).documents.length > 0);
    expect(await rowOf(session)).toMatchObject({ fault: null, failures: 0, not_found_at: null });
  });

  it('is asked for again when it had been there, more and more rarely, and is read as it is when it is back', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await read(session, 1);
    change({ hiddenLookUps: session.lookUps + 6 });
    await refresh(session);
    await until('it is gone', async () => (await show(session.sessionId)).goneAt);
    expect((await rowOf(session)).due_at).not.toBeNull();
    await hurryUntil('it is there again', async () => (await show(session.sessionId)).goneAt === null);
    expect((await show(session.sessionId)).state).toBe('Done');
  });

  it('is asked for at once when an event tells of it, however long the wait was', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await read(session, 1);
    world.simulator.state.sessions.remove(session);
    await refresh(session);
    await until('it is gone', async () => (await rowOf(session)).fault === 'gone');
    const put = `UPDATE sessions SET due_at = now() + interval '1 day', failures = 12
      WHERE session_id = $1 AND lease_owner IS NULL RETURNING 1`;
    await until('it waits', async () => (await sql(put, [session.sessionId])).length > 0);
    world.simulator.state.deliveries.send({
      eventType: 'SESSION_PROCESSING_NOTES_COMPLETED',
      sessionId: session.sessionId,
      providerUserId: world.provider,
      partnerAppointmentId: null,
      aiNotesEnabled: true,
    });
    await until('it was asked for', async () => (await rowOf(session)).failures === 13);
  });

  it('under a processing id is looked up again', async () => {
    change({ hiddenLookUps: 2, webhookDropRate: 1 });
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    change({ webhookDropRate: 0 });
    const { processingId } = session;
    world.simulator.state.deliveries.send({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId } });
    await hurryUntil('its notes are there', async () => (await notesOf(session.sessionId)).documents?.length > 0);
  });
});

describe('each kind of look-up has its own places', () => {
  afterEach(release);

  it('look-ups of processing ids that hang hold up no notes', async () => {
    await order({ operation: 'getProcessingSession', kind: 'slow', ms: 3_600_000 });
    const before = arrivals('getProcessingSession');
    for (let at = 0; at < 8; at += 1) {
      world.simulator.state.deliveries.send({
        eventType: 'PROCESSING_SESSION_FINISHED',
        payload: { processingId: `hangs-${at}` },
      });
    }
    await until('some hang', () => arrivals('getProcessingSession') > before);
    await heardAll();
    const sessions = Array.from({ length: 6 }, () => newSession({ noteTemplateIds: [SOAP] }));
    for (const session of sessions) toEnd(session);
    for (const session of sessions) await read(session, 1);
  });

  it('sessions of which an event tells are fetched beside and before a bulk refresh', async () => {
    await sql('DELETE FROM sessions'); // a refresh of those that the platform does not know is not held back
    const old = Array.from({ length: 12 }, () => newSession({ noteTemplateIds: [SOAP] }));
    for (const session of old) toEnd(session);
    for (const session of old) await read(session, 1);
    await heardAll();
    await until('nothing is wanted', async () => {
      const { pending } = (await world.service.call('GET', '/v1/sessions/refreshes')).json<{ pending: number }>();
      return pending === 0;
    });
    // A look-up of its own, after its time, would be one more, and one that is under way may plan another.
    await until('none is under way', async () => {
      await sql('UPDATE sessions SET due_at = NULL WHERE lease_owner IS NULL');
      return (await sql('SELECT 1 FROM sessions WHERE due_at IS NOT NULL OR lease_owner IS NOT NULL')).length === 0;
    });
    await order({ operation: 'getSession', kind: 'slow', ms: 3_600_000, count: 3 });
    const before = arrivals('getSession');
    await world.service.call('POST', '/v1/sessions/refreshes', { body: { since: '2026-01-01' } });
    await until('what may be fetched of it is', () => arrivals('getSession') === before + 3);
    const lately = [newSession({ noteTemplateIds: [SOAP] }), newSession({ noteTemplateIds: [SOAP] })];
    for (const session of lately) toEnd(session);
    for (const session of lately) await read(session, 1);
    const [{ waiting }] = await sql(
      'SELECT count(*)::int AS waiting FROM sessions WHERE lane = 1 AND lease_owner IS NULL',
    );
    expect(waiting).toBe(old.length - 3);
    await release();
    await until('all were fetched', async () => (await sql('SELECT 1 FROM sessions WHERE lane = 1')).length === 0);
  });

  it('a bulk refresh makes many sessions due in small batches, and what an event made due stays before them', async () => {
    await sql(
      `INSERT INTO sessions (id, session_id, state, updated_at, due_at, wanted_generation)
       SELECT gen_random_uuid(), 'bulk-' || n, 'Done', '2031-01-01', CASE WHEN n = 1 THEN now() + interval '1 hour' END, 1
       FROM generate_series(1, 1200) n`,
    );
    await order({ operation: 'getSession', kind: 'slow', ms: 3_600_000 });
    const wanted = world.service.app.get(WantedRefreshes);
    const statements = await statementsOf(['sessions'], async () => {
      expect(await wanted.wantSince(new Date('2030-12-31'))).toBe(1_200);
    });
    const sizes = statements.flatMap(({ values }) => (Array.isArray(values[0]) ? [values[0].length] : []));
    expect(sizes).toEqual([500, 500, 200]);
    // Some may have been looked up already: the platform does not know them.
    const lanes = await sql(
      `SELECT session_id = 'bulk-1' AS told, array_agg(DISTINCT lane) AS lanes FROM sessions
       WHERE session_id = 'bulk-1' OR session_id LIKE 'bulk-%' AND lease_no = 0 GROUP BY 1 ORDER BY 1`,
    );
    expect(lanes).toEqual([
      { told: false, lanes: [1] },
      { told: true, lanes: [0] },
    ]);
    await sql(`DELETE FROM sessions WHERE session_id LIKE 'bulk-%'`);
  });
});

describe('a session that is processed again', () => {
  it('a month after its end is looked up soon, and at its end its notes are there', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await read(session, 1);
    await sql(
      `UPDATE sessions SET created_at = created_at - interval '30 days', last_event_at = last_event_at - interval '30 days'
       WHERE session_id = $1`,
      [session.sessionId],
    );
    change({ webhookDropRate: 1 });
    beginRegeneration(world.simulator.state, session, [SOAP]);
    await refresh(session);
    await shownAs(session.sessionId, 'Processing');
    expect(await rowOf(session)).toMatchObject({ soon: true });
    takeStep(world.simulator.state, session);
    change({ webhookDropRate: 0 });
    await hurry();
    await read(session, 2);
    expect((await rowOf(session)).reopened_at).toBeNull();
  });

  it('and fails then is an Error that keeps the notes of before', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    const before = await read(session, 1);
    change({ regenerationFailureRate: 1 });
    beginRegeneration(world.simulator.state, session, [SOAP]);
    takeStep(world.simulator.state, session);
    change({ regenerationFailureRate: 0 });
    await shownAs(session.sessionId, 'Error');
    expect((await notesOf(session.sessionId)).documents).toEqual(before.documents);
  });
});
