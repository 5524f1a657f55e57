import { beginRegeneration, takeStep } from '../../simulator/sessions/session-run.js';
import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import type { OverviewResponse } from '../../src/operations/overview/overview.dto.js';
import { contractFile } from '../support/contract-file.js';
import { DAP, SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { useArrivingSessions } from './arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { newSession, toEnd, show, shownAs, notesOf, read, refresh, fetches, tell, unheard } = sessions;

async function healthAs(status: string, reason = '') {
  const { checks } = (await world.call<HealthReport>('GET', '/health/ready')).body;
  const { causedBy = 'sessions' } = checks.sessions ?? {};
  expect(checks.sessions?.status).toBe(status);
  expect(checks[causedBy]?.reason ?? '').toContain(reason);
  return checks.sessions;
}

const order = (rule: Parameters<typeof world.platform.injectFault>[0]) =>
  world.platform.injectFault({ operation: 'getSession', ...rule });

describe('refreshing', () => {
  const generations = async () =>
    (
      await world.sql<{ wanted: number; fetched: number }>(
        'SELECT changes AS wanted, fetched_changes AS fetched FROM sessions',
      )
    )[0] ?? { wanted: 0, fetched: 0 };

  it('fetches once more after a burst of events during a fetch', async () => {
    const session = newSession();
    toEnd(session);
    await world.settle();
    const metrics = async () => (await world.call('GET', '/metrics')).text;
    const noteLags = async () => Number(/^notebridge_note_lag_seconds_count (\d+)$/m.exec(await metrics())?.[1]);
    const [before, lags] = [fetches(), await noteLags()];
    await refresh(session);
    const held = await world.untilHeld({ operation: 'getSession' });
    const { wanted: earlier } = await generations();
    for (let copy = 0; copy < 20; copy += 1) {
      tell({
        eventType: 'SESSION_PROCESSING_NOTES_COMPLETED',
        sessionId: session.sessionId,
        providerUserId: sessions.provider,
        // Exact repeats would be stored once by the inbox.
        partnerAppointmentId: `appointment-${copy}`,
        aiNotesEnabled: true,
      });
    }
    await world.settle();
    expect((await generations()).wanted).toBe(earlier + 20);
    await held.answer();
    const { wanted, fetched } = await generations();
    expect(fetched).toBe(wanted);
    expect(fetches() - before).toBe(2);
    const text = await metrics();
    expect(text).toMatch(/^notebridge_health_status\{check="sessions",caused_by=""\} 0$/m);
    expect([lags > 0, await noteLags()]).toEqual([true, lags]); // later answers had the same notes
    const [revisions] = await world.sql('SELECT count(event_at)::int AS announced FROM document_revisions');
    expect(revisions?.announced).toBeGreaterThan(0);
    expect(text).toMatch(/^notebridge_oldest_due_seconds\{kind="sessions"\} /m);
  });

  it('retries while the platform fails, and loses nothing', async () => {
    order({ kind: 'status', status: 503 });
    const session = newSession();
    toEnd(session);
    await world.settle();
    expect([fetches(503), fetches()]).toEqual([1, 1]);
    await world.advance('1 h');
    await read(session, 1);
  });

  it('looks up a session whose final event was lost', async () => {
    const session = newSession();
    takeStep(world.platform.simulator.state, session);
    await shownAs(session.sessionId, 'Processing');
    expect((await show(session.sessionId)).fetchedAt).not.toBeNull();
    unheard(() => toEnd(session));
    await world.advance('1 h');
    await read(session, 1);
    expect((await show(session.sessionId)).state).toBe('Done');
  });

  it('fetches a reprocessed session until it is Done, without an event', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await read(session, 1);
    session.state = 'Processing';
    await refresh(session);
    await shownAs(session.sessionId, 'Processing');
    session.state = 'Done';
    await world.advance('1 h');
    await shownAs(session.sessionId, 'Done');
  });

  it('stops all fetches but one probe per pause while the key is rejected', async () => {
    order({ kind: 'forbid', count: null });
    const all = Array.from({ length: 12 }, () => newSession({ noteTemplateIds: [SOAP] }));
    for (const session of all) toEnd(session);
    await world.settle();
    const { body: counts } = await world.call<{ failing: number }>('GET', '/v1/sessions/refreshes');
    expect(counts.failing).toBeGreaterThan(0);
    expect(fetches(403)).toBe(1);
    for (const pauses of [1, 2, 3]) {
      await world.advance('1 h');
      await world.settle();
      expect(fetches(403)).toBe(1 + pauses);
    }
    expect(await world.sql('SELECT max(failures) AS failures FROM sessions')).toEqual([{ failures: 0 }]);
    await healthAs('degraded', 'PLATFORM_API_KEY');
    world.platform.release();
    await world.advance('1 h');
    for (const session of all) await read(session, 1);
    expect(await healthAs('ok')).toEqual({ status: 'ok', facts: { canFetch: true } });
  });

  it('reports in health a session that has waited for minutes, until it is fetched', async () => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    await refresh(session);
    await world.advance('6 min');
    await healthAs('degraded', 'five minutes');
    await world.settle();
    await healthAs('ok');
  });

  it('reports overdue notes in health and metrics while answers are unreadable', async () => {
    order({ kind: 'bad-json', count: null });
    const session = newSession();
    toEnd(session);
    const metric = async (name: string) => {
      const lines = (await world.call('GET', '/metrics')).text.split('\n');
      return Number(lines.find((line) => line.startsWith(`notebridge_${name} `))?.split(' ')[1]);
    };
    await world.settle();
    expect(await world.sql('SELECT fault FROM sessions')).toEqual([{ fault: 'unreadable-answer' }]);
    await healthAs('degraded', 'Answers of the platform are unreadable');
    await world.advance('6 min');
    await world.settle(); // each failure postpones the next fetch, so none is overdue
    expect(await metric('oldest_due_seconds{kind="notes"}')).toBeGreaterThan(300);
    const unreadable = 'platform_call_seconds_count{operation="getSession",outcome="unreadable"}';
    expect(await metric(unreadable)).toBeGreaterThan(0);
    world.platform.release();
    await refresh(session);
    await read(session, 1);
    await healthAs('ok');
    await world.advance('1 min'); // metrics are cached
    expect(await metric('oldest_due_seconds{kind="notes"}')).toBe(0);
  });

  it('does not store an answer about another session, and asks again', async () => {
    const [asked, other] = [newSession(), newSession()];
    for (const session of [asked, other]) toEnd(session);
    await read(asked, 1);
    const known = await show(asked.sessionId);
    const { sessionId, providerUserId, clientUserIds } = other;
    const notes = [
      { sessionDocumentId: 'd-1', noteTemplateId: SOAP, notes: [{ category: 'Plan', text: 'Of another.' }] },
    ];
    const body = { sessionId, providerUserId, clientUserIds, noteTemplateIds: [SOAP], state: 'Done', notes };
    order({ kind: 'answer', count: 1, match: { sessionId: asked.sessionId }, body });
    await refresh(asked);
    await world.settle();
    expect(await show(asked.sessionId)).toMatchObject({
      notesRevision: known.notesRevision,
      fetchedAt: known.fetchedAt,
    });
    await read(asked, 1);
    await healthAs('degraded', 'about another session');
    await world.advance('1 min');
    await world.settle();
    await healthAs('ok');
    expect(await show(asked.sessionId)).not.toMatchObject({ fetchedAt: known.fetchedAt });
  });

  it('keeps a state that the spec does not name, and looks again', async () => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    session.state = 'Archived' as never;
    await refresh(session);
    await world.settle();
    expect(await world.sql('SELECT state, fault, due_at IS NULL AS rests FROM sessions')).toEqual([
      { state: 'Archived', fault: null, rests: false },
    ]);
    await read(session, 1);
  });

  it.each([302, 405])('%i pauses fetches and changes nothing, until the address is right', async (status) => {
    order({ kind: 'status', status, count: null });
    const session = newSession();
    toEnd(session);
    await world.settle();
    await healthAs('degraded', 'Check PLATFORM_BASE_URL');
    await world.advance('1 h');
    await world.settle();
    expect(await world.sql('SELECT failures, not_found_at FROM sessions')).toEqual([
      { failures: 0, not_found_at: null },
    ]);
    world.platform.release();
    await world.advance('10 min');
    await read(session, 1);
    await healthAs('ok');
  });

  it('fetches all sessions since a given time on demand', async () => {
    for (let count = 0; count < 6; count += 1) toEnd(newSession());
    await world.settle();
    const before = fetches();
    const since = { body: { since: '2026-01-01' } };
    expect((await world.call<object>('POST', '/v1/sessions/refreshes', since)).body).toEqual({ sessions: 6 });
    await world.settle();
    expect(fetches()).toBe(before + 6);
    const counts = await world.call<object>('GET', '/v1/sessions/refreshes');
    expect(counts.body).toMatchObject({ pending: 0, failing: 0 });
    for (const body of [{}, { since: '2026-01-01', session: 'x' }, { since: 'yesterday' }]) {
      expect((await world.call('POST', '/v1/sessions/refreshes', { body })).status).toBe(400);
    }
    expect((await world.call('POST', '/v1/sessions/refreshes', { body: { session: 'x' } })).status).toBe(404);
  });

  it('ends with the newest notes after shuffled, repeated and late deliveries', async () => {
    world.platform.set({ webhookDuplicateRate: 0.3, webhookShuffleMs: 300 });
    const all = Array.from({ length: 20 }, () => newSession({ noteTemplateIds: [SOAP] }));
    for (const [index, session] of all.entries()) {
      toEnd(session);
      for (let round = 0; round < index % 4; round += 1) {
        beginRegeneration(world.platform.simulator.state, session, [SOAP]);
        takeStep(world.platform.simulator.state, session);
      }
    }
    await world.settle();
    for (const session of all) {
      const { documents } = await notesOf(session.sessionId);
      expect(documents).toHaveLength(1);
      expect(documents[0]?.notes[0]?.text).toContain(`(Generation ${session.generation}.)`);
      const view = await show(session.sessionId);
      expect([view.state, view.aiNotesEnabled, view.aiNotesFinal]).toEqual(['Done', true, true]);
    }
  });

  it('applies events without getSession, and catches up once it is configured', async () => {
    await world.restart({ PLATFORM_CONTRACT: contractFile(['getSession']) });
    const session = newSession({ partnerAppointmentId: 'appointment-9' });
    toEnd(session);
    await shownAs(session.sessionId, 'Done');
    expect(await show(session.sessionId)).toMatchObject({
      partnerAppointmentId: 'appointment-9',
      provider: 'p-1',
      aiNotesEnabled: true,
      fetchedAt: null,
    });
    expect((await notesOf(session.sessionId)).documents).toEqual([]);
    const refused = await world.call('POST', '/v1/sessions/refreshes', { body: { session: session.sessionId } });
    expect(refused.status).toBe(501);
    expect(refused.text).toContain('operations.getSession');
    await world.advance('6 min');
    expect(await healthAs('ok')).toEqual({ status: 'ok', facts: { canFetch: false } });
    const { oldestWork, noteLag } = (await world.call<OverviewResponse>('GET', '/v1/overview')).body;
    expect(oldestWork?.sessions).toBeNull(); // they wait for a setting, not for a worker
    expect(noteLag?.awaitedSince).toBeNull();

    await world.restart();
    await read(session, 1);
  });
});

describe('the processing API', () => {
  it.each(['processingId', 'sessionId'] as const)(
    'finds the session by the %s that the contract locates in the payload',
    async (notesFinishedPayload) => {
      const session = newSession();
      toEnd(session);
      await read(session, 1);
      const generations = 'SELECT changes AS wanted, fetched_changes AS fetched FROM sessions';
      const [before] = await world.sql<{ wanted: number }>(generations);
      const payload = { [notesFinishedPayload]: session[notesFinishedPayload] };
      world.platform.simulator.state.deliveries.sendRaw(
        JSON.stringify({ eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload }),
      );
      await world.settle();
      const wanted = (before?.wanted ?? 0) + 1;
      expect(await world.sql(generations)).toEqual([{ wanted, fetched: wanted }]);
    },
  );

  it('provides the notes if it answers with the session, even without getSession', async () => {
    const response = { session: '/processing/session' };
    const contract = contractFile(['getSession'], { getProcessingSession: { response } });
    await world.restart({ PLATFORM_CONTRACT: contract });
    const session = newSession();
    unheard(() => toEnd(session));
    const notify = () =>
      tell({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId: session.processingId } });
    notify();
    const notes = await read(session, 1);
    expect(notes.documents.map(({ noteTemplateId }) => noteTemplateId)).toEqual([SOAP, DAP]);
    expect(await show(session.sessionId)).toMatchObject({ state: 'Done', provider: 'p-1', clients: ['c-1'] });

    beginRegeneration(world.platform.simulator.state, session, [SOAP]);
    takeStep(world.platform.simulator.state, session);
    notify();
    await read(session, 2);
    expect(fetches()).toBe(0);
  });

  it('reveals an unknown session by PROCESSING_SESSION_FINISHED', async () => {
    const session = unheard(() => newSession());
    unheard(() => toEnd(session));
    tell({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId: session.processingId } });
    await read(session, 1);
  });
});

describe('job events', () => {
  it('are published for smart edits; of a compliance job without a result, completed wins', async () => {
    for (const eventType of ['COMPLIANCE_JOB_FAILED', 'COMPLIANCE_JOB_COMPLETED', 'COMPLIANCE_JOB_FAILED']) {
      tell({ eventType, payload: { jobId: 'job-1' } });
    }
    tell({ eventType: 'SMART_EDIT_JOB_FAILED', payload: { jobId: 'job/2' } });
    await world.settle();
    const { items } = (await world.call<Page<FeedEventResponse>>('GET', '/v1/events?limit=200&after=0')).body;
    const failed = { type: 'smart-edit.failed', subject: 'smart-edit/jobs/job%2F2', data: { jobId: 'job/2' } };
    expect(items.filter(({ type }) => type.startsWith('smart-edit'))).toMatchObject([failed]);
    expect(await world.sql('SELECT job_id, state FROM compliance_jobs')).toEqual([
      { job_id: 'job-1', state: 'Completed' },
    ]);
  });
});
