import { until } from '../harness/until.js';
import { beginRegeneration, takeStep } from '../simulator/sessions/session-run.js';
import type { HealthReport } from '../src/operations/health-checks.js';
import type { OverviewResponse } from '../src/operations/overview/overview.dto.js';
import { SessionRefresher } from '../src/sessions/refresh/refresh.repository.js';
import { DAP, SOAP, useArrivingSessions } from './support/arriving-sessions.js';
import { describeOnBothBackends } from './support/backends.js';
import { readFeed } from './support/read-feed.js';
import { callSimulator } from './support/simulator-call.js';

describeOnBothBackends('sessions are looked up', (backend) => {
  // A fetch may be held as long as a slow machine takes to do what is done meanwhile.
  const world = useArrivingSessions({ ...backend.env, PLATFORM_TIMEOUT_SECONDS: '60' });
  const { newSession, toEnd, show, shownAs, notesOf, read, refresh, heardAll, fetches, hurry, sql } = world;

  const healthAs = (status: string, reason = '') =>
    until(`the health is ${status} (${reason})`, async () => {
      const { sessions } = (await world.service.call('GET', '/health/ready')).json<HealthReport>().checks;
      return sessions?.status === status && (sessions.reason ?? '').includes(reason) ? sessions : undefined;
    });

  describe('refreshing', () => {
    const order = (rules: object[]) => callSimulator(world.simulator, 'POST', '/_simulator/faults', rules);
    const generations = async (sessionId: string): Promise<{ wanted: number; fetched: number }> =>
      (
        await sql(
          'SELECT wanted_generation AS wanted, fetched_generation AS fetched FROM sessions WHERE session_id = $1',
          [sessionId],
        )
      )[0];

    it('a burst of events costs one fetch beside the one that is under way', async () => {
      const session = newSession({ noteTemplateIds: [SOAP, DAP] });
      toEnd(session);
      await heardAll();
      await until('every event is covered by a fetch', async () => {
        const { wanted, fetched } = await generations(session.sessionId);
        return wanted === fetched;
      });
      const before = fetches();
      await order([{ operation: 'getSession', kind: 'slow', ms: 3_600_000, count: 1 }]);
      await refresh(session);
      await until('a fetch is under way', () => fetches() > before);
      const { wanted: earlier } = await generations(session.sessionId);
      for (let copy = 0; copy < 20; copy += 1) {
        world.simulator.state.deliveries.send({
          eventType: 'SESSION_PROCESSING_NOTES_COMPLETED',
          sessionId: session.sessionId,
          providerUserId: world.provider,
          // Exact repeats are folded into one by the inbox.
          partnerAppointmentId: `appointment-${copy}`,
          aiNotesEnabled: true,
        });
      }
      await heardAll();
      expect((await generations(session.sessionId)).wanted).toBe(earlier + 20);
      world.simulator.state.timers.cancelAll(); // the fetch that is under way is answered
      await until('every event is covered by a fetch', async () => {
        const { wanted, fetched } = await generations(session.sessionId);
        return wanted === fetched;
      });
      expect(fetches() - before).toBe(2);
      // A stalled machine may keep a check from its answer at a look.
      const text = await until('the metrics say that all is well', async () => {
        const metrics = (await world.service.call('GET', '/metrics')).text;
        return /^notebridge_health_status\{check="sessions"\} 0$/m.test(metrics) ? metrics : undefined;
      });
      expect(/^notebridge_note_lag_seconds_count (\d+)$/m.exec(text)?.[1]).toBe('1'); // later answers held the same notes
      const [{ told }] = await world.sql('SELECT count(event_at)::int AS told FROM document_revisions');
      expect(told).toBeGreaterThan(0);
      expect(text).toMatch(/^notebridge_oldest_due_seconds\{kind="sessions"\} /m);
    });

    it('a platform that fails for a while is asked again, and nothing is lost', async () => {
      const clock = world.holdClock();
      await order([{ operation: 'getSession', kind: 'status', status: 503, count: 1 }]);
      const session = newSession();
      toEnd(session);
      await until('it failed', () => fetches(503) === 1);
      await heardAll();
      clock.letPass(3_600_000);
      await hurry();
      await read(session, 1);
      clock.goOn();
    });

    it('a session whose end no event told is looked up by itself', async () => {
      const session = newSession();
      takeStep(world.simulator.state, session);
      await until('it was fetched while it was processed', async () => (await show(session.sessionId)).fetchedAt);
      expect((await show(session.sessionId)).state).toBe('Processing');
      world.simulator.state.settings = { ...world.simulator.state.settings, webhookDropRate: 1 };
      toEnd(session);
      world.simulator.state.settings = { ...world.simulator.state.settings, webhookDropRate: 0 };
      await read(session, 1);
      await shownAs(session.sessionId, 'Done');
    });

    it('a session that is processed again is fetched until it is Done, which no event tells', async () => {
      const session = newSession({ noteTemplateIds: [SOAP] });
      toEnd(session);
      await read(session, 1);
      session.state = 'Processing';
      await refresh(session);
      await shownAs(session.sessionId, 'Processing');
      session.state = 'Done';
      await hurry();
      await shownAs(session.sessionId, 'Done');
    });

    it('a refused key stops all fetches but one probe after each pause, and burns nobody’s attempts', async () => {
      const AT_ONCE = 4;
      const clock = world.holdClock();
      await order([{ operation: 'getSession', kind: 'forbid' }]);
      const sessions = Array.from({ length: 3 * AT_ONCE }, () => newSession({ noteTemplateIds: [SOAP] }));
      for (const session of sessions) toEnd(session);
      await heardAll();
      await until('the sessions count as failing', async () => {
        const counts = (await world.service.call('GET', '/v1/sessions/refreshes')).json<{ failing: number }>();
        return counts.failing > 0;
      });
      // A refusal that is taken in after the clock moved would begin a pause that nothing ends.
      const isTakenIn = async () => (await sql('SELECT 1 FROM sessions WHERE lease_owner IS NOT NULL')).length === 0;
      for (const pauses of [1, 2, 3]) {
        await until('every refusal is taken in', isTakenIn);
        const before = fetches(403);
        clock.letPass(3_600_000);
        await hurry();
        await until('a probe was refused', () => fetches(403) > before);
        await hurry();
        await world.service.app.get(SessionRefresher).run(); // returns when it may not fetch, or has fetched all
        expect(fetches(403)).toBeLessThanOrEqual(AT_ONCE + pauses);
      }
      expect((await sql('SELECT max(failures) AS failures FROM sessions'))[0]?.failures).toBe(0);
      await healthAs('degraded', 'PLATFORM_API_KEY');
      await callSimulator(world.simulator, 'DELETE', '/_simulator/faults');
      await until('every refusal is taken in', isTakenIn);
      clock.letPass(3_600_000);
      await hurry();
      for (const session of sessions) await read(session, 1);
      clock.goOn();
      expect(await healthAs('ok')).toEqual({ status: 'ok', facts: { canFetch: true } });
    });

    it('health says when a session has waited for minutes, and no longer once it was fetched', async () => {
      const session = newSession();
      toEnd(session);
      await read(session, 1);
      // As behind a worker that hangs: due for six minutes, and held.
      await sql(
        `UPDATE sessions SET wanted_generation = wanted_generation + 1, due_at = now() - interval '6 minutes',
           lease_owner = gen_random_uuid(), lease_safe_at = now() + interval '1 hour'
         WHERE session_id = $1`,
        [session.sessionId],
      );
      await healthAs('degraded', 'five minutes');
      await sql('UPDATE sessions SET lease_safe_at = now() WHERE session_id = $1', [session.sessionId]);
      await refresh(session);
      await healthAs('ok');
    });

    it('notes that stay away while each answer is unreadable are told by health and metrics', async () => {
      await order([{ operation: 'getSession', kind: 'bad-json', count: null }]);
      const session = newSession();
      toEnd(session);
      await heardAll();
      const fault = () => sql('SELECT fault FROM sessions WHERE session_id = $1', [session.sessionId]);
      await until('a fetch failed', async () => (await fault())[0]?.fault === 'unreadable-answer');
      // Each fault puts the next fetch off: nothing is overdue, however long it goes on.
      await sql(
        `UPDATE sessions SET last_event_at = now() - interval '6 minutes', due_at = now() + interval '1 hour'
         WHERE session_id = $1`,
        [session.sessionId],
      );
      await healthAs('degraded', 'unreadable-answer');
      const metric = async (name: string) => {
        const lines = (await world.service.call('GET', '/metrics')).text.split('\n');
        return Number(lines.find((line) => line.startsWith(`notebridge_${name} `))?.split(' ')[1]);
      };
      await until('it is late', async () => (await metric('oldest_due_seconds{kind="notes"}')) > 300);
      const unreadable = 'platform_call_seconds_count{operation="getSession",outcome="unreadable"}';
      expect(await metric(unreadable)).toBeGreaterThan(0);
      await callSimulator(world.simulator, 'DELETE', '/_simulator/faults');
      await refresh(session);
      await read(session, 1);
      await healthAs('ok');
      await until('none is due', async () => (await metric('oldest_due_seconds{kind="notes"}')) === 0);
    });

    it('all sessions since a moment are fetched again on demand', async () => {
      const answer = await world.service.call('POST', '/v1/sessions/refreshes', { body: { since: '2026-01-01' } });
      expect(answer.json<{ sessions: number }>().sessions).toBeGreaterThan(5);
      await until('all were fetched', async () => {
        const { pending, failing } = (await world.service.call('GET', '/v1/sessions/refreshes')).json();
        return pending === 0 && failing === 0;
      });
      for (const body of [{}, { since: '2026-01-01', session: 'x' }, { since: 'yesterday' }]) {
        expect((await world.service.call('POST', '/v1/sessions/refreshes', { body })).status).toBe(400);
      }
      expect((await world.service.call('POST', '/v1/sessions/refreshes', { body: { session: 'x' } })).status).toBe(404);
    });

    it('deliveries that are shuffled, doubled and late end in the newest notes of every session', async () => {
      world.simulator.state.settings = {
        ...world.simulator.state.settings,
        webhookDuplicateRate: 0.3,
        webhookShuffleMs: 300,
      };
      const sessions = Array.from({ length: 20 }, () => newSession({ noteTemplateIds: [SOAP] }));
      for (const [index, session] of sessions.entries()) {
        toEnd(session);
        for (let round = 0; round < index % 4; round += 1) {
          beginRegeneration(world.simulator.state, session, [SOAP]);
          takeStep(world.simulator.state, session);
        }
      }
      await heardAll();
      world.simulator.state.settings = {
        ...world.simulator.state.settings,
        webhookDuplicateRate: 0,
        webhookShuffleMs: 0,
      };
      for (const session of sessions) {
        const notes = await read(session, session.generation);
        expect(notes.documents).toHaveLength(1);
        const view = await show(session.sessionId);
        expect([view.state, view.aiNotesEnabled, view.aiNotesFinal]).toEqual(['Done', true, true]);
      }
    });

    it('without getSession events are kept, the EHR sees what they say, and a later start catches up', async () => {
      await world.restart(['getSession']);
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
      const refused = await world.service.call('POST', '/v1/sessions/refreshes', {
        body: { session: session.sessionId },
      });
      expect(refused.status).toBe(501);
      expect(refused.text).toContain('operations.getSession');
      await sql(
        "UPDATE sessions SET due_at = now() - interval '6 minutes', last_event_at = due_at WHERE session_id = $1",
        [session.sessionId],
      );
      expect(await healthAs('ok')).toEqual({ status: 'ok', facts: { canFetch: false } });
      const { oldestWork, noteLag } = (await world.service.call('GET', '/v1/overview')).json<OverviewResponse>();
      expect(oldestWork?.sessions).toBeNull(); // they wait for a setting, and for no worker
      expect(noteLag?.awaitedSince).toBeNull();

      await world.restart();
      await read(session, 1);
    });
  });

  describe('the processing API', () => {
    it.each(['processingId', 'sessionId'] as const)(
      'finds the session by a %s where the contract says that it stands in a payload that the spec does not show',
      async (notesFinishedPayload) => {
        const session = newSession();
        toEnd(session);
        await read(session, 1);
        await world.rested(session); // an event of its own would look like the notice
        const [before] = await sql('SELECT wanted_generation FROM sessions WHERE session_id = $1', [session.sessionId]);
        const payload = { [notesFinishedPayload]: session[notesFinishedPayload] };
        world.simulator.state.deliveries.sendRaw(
          JSON.stringify({ eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload }),
        );
        await until('the session is looked up again', async () => {
          const [row] = await sql('SELECT wanted_generation, fetched_generation FROM sessions WHERE session_id = $1', [
            session.sessionId,
          ]);
          return (
            row?.wanted_generation > before?.wanted_generation && row?.fetched_generation === row?.wanted_generation
          );
        });
        expect(await sql('SELECT 1 FROM processing_notices')).not.toHaveLength(0);
      },
    );

    it('that answers with the session itself gives its notes, also where no session can be fetched', async () => {
      const response = { session: '/processing/session' };
      await world.restart(['getSession'], { getProcessingSession: { response } });
      world.simulator.state.settings = { ...world.simulator.state.settings, webhookDropRate: 1 };
      const session = newSession();
      toEnd(session);
      world.simulator.state.settings = { ...world.simulator.state.settings, webhookDropRate: 0 };
      const tell = () =>
        world.simulator.state.deliveries.send({
          eventType: 'PROCESSING_SESSION_FINISHED',
          payload: { processingId: session.processingId },
        });
      const before = fetches();
      tell();
      const notes = await read(session, 1);
      expect(notes.documents.map(({ noteTemplateId }) => noteTemplateId)).toEqual([SOAP, DAP]);
      expect(await show(session.sessionId)).toMatchObject({ state: 'Done', provider: 'p-1', clients: ['c-1'] });

      beginRegeneration(world.simulator.state, session, [SOAP]);
      takeStep(world.simulator.state, session);
      tell();
      await read(session, 2);
      expect(fetches()).toBe(before);
      await world.restart();
    });

    it('a PROCESSING_SESSION_FINISHED of a session of which nothing was heard makes it known', async () => {
      world.simulator.state.settings = { ...world.simulator.state.settings, webhookDropRate: 1 };
      const session = newSession();
      toEnd(session);
      world.simulator.state.settings = { ...world.simulator.state.settings, webhookDropRate: 0 };
      world.simulator.state.deliveries.send({
        eventType: 'PROCESSING_SESSION_FINISHED',
        payload: { processingId: session.processingId },
      });
      await read(session, 1);
    });
  });

  describe('jobs', () => {
    it('are recorded by their id, completed above failed, and told to the EHR', async () => {
      for (const eventType of ['COMPLIANCE_JOB_FAILED', 'COMPLIANCE_JOB_COMPLETED', 'COMPLIANCE_JOB_FAILED'] as const) {
        world.simulator.state.deliveries.send({ eventType, payload: { jobId: 'job-1' } });
      }
      for (const eventType of ['SMART_EDIT_JOB_FAILED', 'SMART_EDIT_JOB_FAILED'] as const) {
        world.simulator.state.deliveries.send({ eventType, payload: { jobId: 'job-2' } });
      }
      await heardAll();
      const told = async (kind: string) => {
        const items = await readFeed(world.service);
        return items.map(({ type }) => type).filter((type) => type.startsWith(kind));
      };
      await until('the end is told', async () => (await told('compliance')).includes('compliance.completed'));
      await until('the other too', async () => (await told('smart-edit')).length > 0);
      expect(await told('smart-edit')).toEqual(['smart-edit.failed']);
      expect(await sql('SELECT job_id, state FROM compliance_jobs')).toEqual([{ job_id: 'job-1', state: 'Completed' }]);
      expect(await sql('SELECT job_id, state FROM smart_edit_jobs')).toEqual([{ job_id: 'job-2', state: 'Failed' }]);
    });
  });
});
