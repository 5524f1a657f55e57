import { randomUUID } from 'node:crypto';
import { until } from '../harness/until.js';
import { readFaultRule } from '../simulator/gate/fault-rule.js';
import { takeStep } from '../simulator/sessions/session-run.js';
import type { Page } from '../src/http/request/page.js';
import { PlatformClient } from '../src/platform/clients/platform-client.js';
import { RequestSender } from '../src/sessions/create/request-sender.js';
import { SessionCalls } from '../src/sessions/model/session-calls.js';
import type { SessionResponse } from '../src/sessions/model/session-view.js';
import type { TimelineEntryResponse } from '../src/sessions/read/timeline.dto.js';
import { SessionEventsRepository } from '../src/sessions/refresh/session-events.repository.js';
import { SOAP, texts, useArrivingSessions } from './support/arriving-sessions.js';

// A call that a slow machine answers late is not one without an answer.
const world = useArrivingSessions({ PLATFORM_TIMEOUT_SECONDS: '60' });

async function timeline(id: string, query = 'limit=200'): Promise<Page<TimelineEntryResponse>> {
  const answer = await world.service.call('GET', `/v1/sessions/${id}/timeline?${query}`);
  expect(answer.status).toBe(200);
  return answer.json();
}

/** What an entry says, without ids and moments. */
const said = ({ event, call, request, notes }: TimelineEntryResponse): string =>
  [
    event && `${event.eventType} ${event.state}`,
    call && `${call.operation} ${call.outcome}${call.status === null ? '' : ` ${call.status}`}`,
    request?.state,
    notes && `notes ${notes.noteTemplateId} ${notes.revision}`,
  ]
    .filter((part) => part)
    .join();

const INPUT = 'They spoke of the lighthouse and of sleeping badly.';

/** Asks for a session as the EHR does, which the platform then processes to its end. */
async function asked(appointment: string): Promise<SessionResponse> {
  const body = {
    provider: 'p-1',
    client: 'c-1',
    noteTemplateIds: [SOAP],
    input: { text: { text: INPUT } },
    partnerAppointmentId: appointment,
  };
  const answer = await world.service.call('POST', '/v1/sessions', { body, wait: 60 });
  return answer.json<SessionResponse>();
}

const onPlatform = (appointment: string) =>
  world.simulator.state.sessions.list().find(({ partnerAppointmentId }) => partnerAppointmentId === appointment);

describe('the timeline of a session', () => {
  beforeAll(async () => {
    await world.sql(
      `UPDATE people SET state = 'synced', step = NULL;
       INSERT INTO client_providers (client_id, position, provider_id)
         SELECT c.id, 0, p.id FROM people c, people p WHERE c.kind = 'client' AND p.kind = 'provider'`,
    );
  });

  it('tells of events, calls, the request and versions of notes in the order of time, and of nothing that they say', async () => {
    const { id } = await asked('visit-1');
    const session = await until('it is there', () => onPlatform('visit-1'));
    world.toEnd(session);
    await world.read(session, 1);
    await world.service.call('PATCH', `/v1/sessions/${id}`, { body: { noteTemplateIds: [SOAP] } });
    while (session.nextStep) takeStep(world.simulator.state, session);
    const notes = await world.read(session, 2);
    await world.rested(session);
    // An answer is stored before its call is recorded.
    const looks = `SELECT 1 FROM session_calls WHERE operation = 'getSession'`;
    await until('every look-up is recorded', async () => (await world.sql(looks)).length === world.fetches());

    const { items, nextCursor } = await timeline(id);
    expect(nextCursor).toBeNull();
    const moments = items.map(({ at }) => Date.parse(String(at)));
    expect(moments).toEqual([...moments].sort((a, b) => b - a));
    const told = items.map(said);
    expect([...new Set(told)].sort()).toEqual([
      'Requested',
      'SESSION_CREATED processed',
      'SESSION_PROCESSING_COMPLETED processed',
      'SESSION_PROCESSING_NOTES_COMPLETED processed',
      'SESSION_PROCESSING_STARTED processed',
      'Settled',
      'createSession answered',
      'getSession answered',
      `notes ${SOAP} 1`,
      `notes ${SOAP} 2`,
      'updateSession answered',
    ]);
    expect(told.at(-1)).toBe('Requested');
    const deliveries = items.flatMap(({ event }) => (event ? [event] : []));
    const [stored] = await world.sql('SELECT id::text, sent_at::float8 FROM webhook_deliveries WHERE id = $1', [
      deliveries[0]?.deliveryId,
    ]);
    expect([stored.id, new Date(stored.sent_at).toISOString()]).toEqual([
      deliveries[0]?.deliveryId,
      deliveries[0]?.sentAt,
    ]);
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

  it('has the attempt without an answer, and what was found before the two became one session', async () => {
    const { state } = world.simulator;
    state.settings = { ...state.settings, webhookDropRate: 1 };
    state.faults.order([readFaultRule({ operation: 'createSession', kind: 'commit-then-cut', count: 1 })]);
    const { id, state: shown } = await asked('visit-2');
    expect(shown).toBe('Unknown');
    state.settings = { ...state.settings, webhookDropRate: 0 };
    await until('the attempt is recorded', async () => (await timeline(id)).items.length === 2);
    expect((await timeline(id)).items.map(said)).toEqual(['createSession unknown-outcome', 'Requested']);

    const session = await until('it is there', () => onPlatform('visit-2'));
    world.toEnd(session);
    await world.heardAll();
    const settled = await until('it is known which session it is', async () => {
      const found = await world.show(id);
      return found.sessionId === session.sessionId ? found : undefined;
    });
    await world.read(session, 1);
    const told = (await timeline(settled.id)).items.map(said);
    expect(told).toEqual(
      expect.arrayContaining(['SESSION_PROCESSING_COMPLETED processed', 'Settled', `notes ${SOAP} 1`]),
    );
    expect(told.slice(-2)).toEqual(['createSession unknown-outcome', 'Requested']);
  });

  it('has the attempt whose process ended before the answer came', async () => {
    const { state } = world.simulator;
    state.settings = { ...state.settings, webhookDropRate: 1 };
    state.faults.order([readFaultRule({ operation: 'createSession', kind: 'commit-then-cut', count: 1 })]);
    const { id } = await asked('visit-3');
    state.settings = { ...state.settings, webhookDropRate: 0 };
    // As it stands after a kill: on its way, by a process that is no more and has recorded nothing.
    await until('it is recorded', async () => (await timeline(id)).items.length === 2);
    await world.sql('DELETE FROM session_calls WHERE session = $1', [id]);
    await world.sql(
      `UPDATE session_requests SET state = 'Requested', lease_owner = gen_random_uuid(), lease_safe_at = now()
       WHERE session = $1`,
      [id],
    );
    // Every process looks for what others have lost.
    const sender = world.service.app.get(RequestSender);
    await Promise.all([sender.settleLost(), sender.settleLost()]);
    await world.shownAs(id, 'Unknown');
    const lost = await until('it is told', async () => {
      const { items } = await timeline(id);
      const found = items.flatMap(({ call }) => (call?.outcome === 'lost' ? [call] : []));
      return found.length > 0 && found;
    });
    expect(lost).toEqual([{ operation: 'createSession', outcome: 'lost', status: null, durationMs: null }]);
  });

  it('has an attempt once whose answer came when it counted as lost, as after an outage of the database', async () => {
    const { state } = world.simulator;
    state.settings = { ...state.settings, webhookDropRate: 1 };
    const { app } = world.service;
    const [platform, sender, calls] = [app.get(PlatformClient), app.get(RequestSender), app.get(SessionCalls)];
    const create = platform.createSession.bind(platform);
    let letAnswerCome = () => {};
    const held = new Promise<void>((resolve) => {
      letAnswerCome = resolve;
    });
    const holding = jest.spyOn(platform, 'createSession').mockImplementation(async (body) => {
      const answer = await create(body);
      await held;
      return answer;
    });
    const asking = asked('visit-late');
    const { session, lease_no: no } = await until('the attempt is under way', async () => {
      const [row] = await world.sql(
        `SELECT session, lease_no FROM session_requests WHERE correlation_id = 'visit-late' AND attempted_at IS NOT NULL`,
      );
      return onPlatform('visit-late') && row;
    });
    // As another process sees it: its owner was not heard of for long.
    await world.sql(
      `UPDATE session_requests SET lease_owner = gen_random_uuid(), lease_safe_at = now() WHERE session = $1`,
      [session],
    );
    await sender.settleLost();
    await world.shownAs(session, 'Unknown');
    const creates = async () =>
      (await timeline(session)).items.map(said).filter((entry) => entry.startsWith('createSession'));
    await until('the attempt is recorded', async () => (await creates()).length > 0);
    expect(await creates()).toEqual(['createSession lost']);
    letAnswerCome();
    await asking;
    await until('the answer is told', async () => (await creates()).includes('createSession answered'));
    expect(await creates()).toEqual(['createSession answered']);
    // Who found it lost may be as late.
    await calls.lostCreate({ key: session, no });
    expect(await creates()).toEqual(['createSession answered']);
    holding.mockRestore();
    state.settings = { ...state.settings, webhookDropRate: 0 };
  });

  it('has the event that could not be processed, and the look-up that was refused', async () => {
    const session = world.newSession();
    await world.heardAll();
    const { id } = await until('it is known', async () => {
      const found = await world.show(session.sessionId);
      return found.fetchedAt === null ? undefined : found;
    });
    const recording = jest.spyOn(world.service.app.get(SessionEventsRepository), 'recordEvent');
    recording.mockRejectedValue(new TypeError('no'));
    takeStep(world.simulator.state, session);
    const failed = await until('an event failed', async () => {
      return (await timeline(id)).items.find(({ event }) => event?.state === 'failed');
    });
    expect(failed.event).toMatchObject({ eventType: 'SESSION_PROCESSING_STARTED', reason: 'TypeError' });
    recording.mockRestore();
    await world.heardAll();

    world.simulator.state.sessions.remove(session);
    await world.sql(`UPDATE sessions SET traceparents = '{former}' WHERE id = $1`, [id]);
    await world.refresh(session);
    const refused = await until('a look-up was refused', async () => {
      return (await timeline(id)).items.find(({ call }) => call !== null && call.outcome !== 'answered');
    });
    expect(said(refused)).toBe('getSession not-found 404');
    // The next look-up is no part of what led to this one.
    await until('it is stored', async () => {
      const [row] = await world.sql('SELECT traceparents FROM sessions WHERE id = $1', [id]);
      return row.traceparents.length === 0;
    });
  });

  it('has the look-up that ended when its session had become another', async () => {
    const { id } = await asked('visit-4');
    const former = randomUUID();
    const end = world.service.app.get(SessionCalls).begin(former, 'getProcessingSession');
    await world.sql('INSERT INTO session_aliases (id, session) VALUES ($1, $2)', [former, id]);
    await end()();
    expect((await timeline(id)).items.map(said)).toContain('getProcessingSession answered');
  });

  it('has the events that name a processing id of the session alone', async () => {
    const session = world.newSession();
    const { deliveries } = world.simulator.state;
    const { processingId } = session;
    deliveries.send({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId } } as never);
    await world.heardAll();
    const entry = await until('the processing id is known to be the session’s', async () => {
      const { items } = await timeline(session.sessionId);
      return items.find(({ event }) => event?.eventType === 'PROCESSING_SESSION_FINISHED');
    });
    expect(said(entry)).toBe('PROCESSING_SESSION_FINISHED processed');
  });
});
