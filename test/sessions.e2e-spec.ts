import { buildSimulator, type Simulator } from '../simulator/app.js';
import type { SimulatedSession } from '../simulator/sessions/session.js';
import { createSession } from '../simulator/sessions/session-routes.js';
import { beginRegeneration, takeStep } from '../simulator/sessions/session-run.js';
import { Database } from '../src/database/database.js';
import type { Page } from '../src/http/page.js';
import type { NotesView, RevisionsView } from '../src/sessions/notes-view.js';
import type { SessionView } from '../src/sessions/session-view.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { contractFile, type SessionsApp, startSessions } from './support/sessions-app.js';
import { callSimulator, newSimulatedClient, newSimulatedProvider } from './support/simulator-call.js';
import { until } from './support/until.js';

const SOAP = '11111111-1111-4111-8111-111111111111';
const DAP = '22222222-2222-4222-8222-222222222222';

let simulator: Simulator;
let database: TestDatabase;
let service: SessionsApp;
let provider: string;
let client: string;

async function startService(without: string[] = []): Promise<void> {
  service = await startSessions(simulator, database.url, {
    PLATFORM_CONTRACT: await contractFile(without),
    SESSION_REFRESH_AFTER_SECONDS: '1',
    SESSION_REFRESH_EVERY_SECONDS: '1',
  });
}

beforeAll(async () => {
  simulator = await buildSimulator({ seed: 11, settings: { stepMs: 0, processingEvents: false } });
  database = await freshDatabase();
  await startService();
  provider = await newSimulatedProvider(simulator);
  client = await newSimulatedClient(simulator, provider);
  await sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id) VALUES
       (gen_random_uuid(), 'provider', 'p-1', '', '', $1), (gen_random_uuid(), 'client', 'c-1', '', '', $2)`,
    [provider, client],
  );
});

afterAll(async () => {
  await service?.close();
  await simulator?.close();
  await database?.drop();
});

const sql = async (text: string, values: unknown[] = []) =>
  (await service.app.get(Database).pool.query(text, values)).rows;

/** A session that the platform's application made, which tells of it by webhooks. */
function newSession(more: Partial<SimulatedSession> = {}): SimulatedSession {
  const input = { kind: 'recording', urls: ['https://files.example.test/1.wav'], content: 'Recording' } as const;
  return createSession(simulator.state, {
    providerUserId: provider,
    clientUserIds: [client],
    noteTemplateIds: [SOAP, DAP],
    input: { ...input, urls: [...input.urls] },
    date: '2026-03-01T09:00:00.000Z',
    partnerAppointmentId: undefined,
    ...more,
  });
}

function toEnd(session: SimulatedSession): void {
  while (session.nextStep) takeStep(simulator.state, session);
}

const show = async (id: string) => (await service.call('GET', `/v1/sessions/${id}`)).json<SessionView>();
const notesOf = async (id: string) => (await service.call('GET', `/v1/sessions/${id}/notes`)).json<NotesView>();
const shownAs = (id: string, state: string) =>
  until(`the session is ${state}`, async () => (await show(id)).state === state);
/** Empty while the session is not known. */
const texts = ({ documents = [] }: Partial<NotesView>) =>
  documents.flatMap(({ notes }) => notes.map(({ text }) => text));

/** The session with its notes of this generation, as the EHR reads them. */
async function read(session: SimulatedSession, generation: number): Promise<NotesView> {
  return until(`the notes of generation ${generation} are there`, async () => {
    const notes = await notesOf(session.sessionId);
    return texts(notes).some((text) => text.includes(`(Generation ${generation}.)`)) ? notes : null;
  });
}

describe('a session that arrives by webhooks', () => {
  it('is read with its notes, transcript and insights by our id and by that of the platform', async () => {
    const session = newSession({ partnerAppointmentId: 'appointment-1' });
    toEnd(session);
    await shownAs(session.sessionId, 'Done');
    await read(session, 1);
    const view = await show(session.sessionId);
    expect(view).toMatchObject({
      sessionId: session.sessionId,
      partnerAppointmentId: 'appointment-1',
      provider: 'p-1',
      clients: ['c-1'],
      providerUserId: provider,
      clientUserIds: [client],
      noteTemplateIds: [SOAP, DAP],
      aiNotesEnabled: true,
      aiNotesFinal: true,
      error: null,
      date: '2026-03-01T09:00:00.000Z',
      notesRevision: 1,
      goneAt: null,
    });
    expect(view.recordingDurationMs).toBeGreaterThan(0);
    expect(await show(view.id)).toEqual(view);

    const notes = await notesOf(view.id);
    expect(notes.documents.map(({ noteTemplateId, revision }) => [noteTemplateId, revision])).toEqual([
      [SOAP, 1],
      [DAP, 1],
    ]);
    const transcript = await service.call('GET', `/v1/sessions/${view.id}/transcript`);
    expect(transcript.json<{ utterances: unknown[] }>().utterances.length).toBeGreaterThan(5);
    expect(transcript.headers.get('cache-control')).toBe('no-store');
    const insights = (await service.call('GET', `/v1/sessions/${view.id}/insights`)).json();
    expect(insights).toMatchObject({ topics: expect.any(Array), namedEntities: expect.any(Array) });
    expect(insights.analyticsSummary).toHaveProperty('talkingRatio');
  });

  it('is told to the EHR: created, its notes ready, and a failure with its code', async () => {
    const session = newSession({ partnerAppointmentId: 'appointment-2' });
    session.willFail = true;
    toEnd(session);
    await shownAs(session.sessionId, 'Error');
    const view = await until('the error was fetched', async () => {
      const now = await show(session.sessionId);
      return now.error ? now : null;
    });
    expect(view.error).toEqual({ code: 'low-content-transcript', message: expect.stringContaining('audio') });
    const events = await until('the feed tells of both', async () => {
      const { items } = (await service.call('GET', '/v1/events?limit=200')).json<
        Page<{ type: string; subject: string }>
      >();
      const types = items.filter(({ subject }) => subject === `sessions/${view.id}`).map(({ type }) => type);
      return types.length >= 2 ? types : null;
    });
    expect(events).toEqual(['session.created', 'session.failed']);
  });

  it('is listed by provider, client, appointment, state and change, page by page', async () => {
    const page = async (query: string) =>
      (await service.call('GET', `/v1/sessions?${query}`)).json<Page<SessionView>>();
    expect((await page('provider=p-1&client=c-1')).items).toHaveLength(2);
    expect((await page('provider=p-2')).items).toEqual([]);
    expect((await page('client=c-2')).items).toEqual([]);
    const [failed] = (await page('state=Error')).items;
    expect(failed).toMatchObject({ partnerAppointmentId: 'appointment-2' });
    expect((await page('appointment=appointment-1')).items).toMatchObject([{ state: 'Done' }]);
    expect((await page(`updatedSince=${failed?.updatedAt}`)).items).toHaveLength(1);
    const first = await page('limit=1');
    expect(first.items).toMatchObject([{ state: 'Done' }]);
    expect((await page(`limit=1&cursor=${first.nextCursor}`)).items).toMatchObject([{ state: 'Error' }]);
    expect((await service.call('GET', '/v1/sessions?cursor=WyJ4IiwieSJd')).status).toBe(400);
    expect((await service.call('GET', '/v1/sessions?updatedSince=yesterday')).status).toBe(400);
  });

  it('has its notes as Markdown and as a FHIR R4 Bundle when Accept says so, and refuses other forms', async () => {
    const path = `/v1/sessions/${newSessionId()}/notes`;
    const markdown = await service.call('GET', path, { accept: 'text/markdown' });
    expect(markdown.headers.get('content-type')).toBe('text/markdown; charset=utf-8');
    expect(markdown.text).toMatch(/^# Session notes\n/);
    expect(markdown.text).toContain('### Plan');
    const fhir = await service.call('GET', path, { accept: 'application/fhir+json;q=0.9, text/html' });
    expect(fhir.headers.get('content-type')).toBe('application/fhir+json; charset=utf-8');
    expect(fhir.json()).toMatchObject({ resourceType: 'Bundle', type: 'collection' });
    expect((await service.call('GET', path, { accept: 'text/html' })).status).toBe(406);
  });

  it('gives out a recording URL on demand and stores it nowhere', async () => {
    const answer = await service.call('GET', `/v1/sessions/${newSessionId()}/recording-url`);
    const { url } = answer.json<{ url: string }>();
    expect(url).toMatch(/^http/);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const stored = JSON.stringify(await sql('SELECT * FROM sessions'));
    expect(stored).not.toContain(new URL(url).pathname);
  });

  it('leaves no clinical text readable in the database', async () => {
    const rows = await Promise.all(
      ['sessions', 'session_documents', 'document_revisions', 'session_insights'].map((table) =>
        sql(`SELECT * FROM ${table}`),
      ),
    );
    const bytes = rows
      .flat()
      .flatMap((row) => Object.values(row))
      .filter((value) => Buffer.isBuffer(value));
    expect(bytes.length).toBeGreaterThan(5);
    expect(Buffer.concat(bytes as Buffer[]).toString('latin1')).not.toMatch(/warehouse|Generation|utterances/);
  });

  const newSessionId = () => simulator.state.sessions.list()[0]?.sessionId ?? '';
});

describe('notes that change', () => {
  it('two genuine events with identical bodies, the second after a regeneration: the second version is stored', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    const before = await read(session, 1);
    beginRegeneration(simulator.state, session, [SOAP]);
    takeStep(simulator.state, session);
    const bodies = simulator.state.deliveries
      .list()
      .map(({ body }) => body)
      .filter((body) => body.includes(session.sessionId) && body.includes('NOTES_COMPLETED'));
    expect(bodies).toHaveLength(2);
    expect(bodies[0]).toBe(bodies[1]);

    const after = await read(session, 2);
    expect(after.documents).toMatchObject([{ documentId: before.documents[0]?.documentId, revision: 2 }]);
    expect(after.notesRevision).toBe(2);
    const path = `/v1/sessions/${session.sessionId}/notes/${after.documents[0]?.documentId}/revisions`;
    const revisions = (await service.call('GET', path)).json<RevisionsView>();
    expect(revisions.items.map(({ revision }) => revision)).toEqual([2, 1]);
    expect(revisions.items[1]?.notes[0]?.text).toContain('(Generation 1.)');
  });

  it('a sessionDocumentId that changes stays in the chain of its template', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    const before = await read(session, 1);
    simulator.state.settings = { ...simulator.state.settings, documentIds: 'fresh' };
    beginRegeneration(simulator.state, session, [SOAP]);
    takeStep(simulator.state, session);
    simulator.state.settings = { ...simulator.state.settings, documentIds: 'stable' };
    const after = await read(session, 2);
    expect(after.documents).toHaveLength(1);
    expect(after.documents[0]?.documentId).toBe(before.documents[0]?.documentId);
    expect(after.documents[0]?.sessionDocumentId).not.toBe(before.documents[0]?.sessionDocumentId);
    const byOldId = `/v1/sessions/${session.sessionId}/notes/${before.documents[0]?.sessionDocumentId}/revisions`;
    expect((await service.call('GET', byOldId)).json<RevisionsView>().items).toHaveLength(2);
  });

  it('a document that disappears is superseded, not erased, and comes back when the platform has it again', async () => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    const dropped = session.documents.get(DAP);
    session.documents.delete(DAP);
    await refresh(session);
    const without = await until('the document is superseded', async () => {
      const notes = await notesOf(session.sessionId);
      return notes.documents.some(({ supersededAt }) => supersededAt !== null) ? notes : null;
    });
    expect(without.documents.map(({ noteTemplateId }) => noteTemplateId)).toEqual([SOAP, DAP]);
    expect(without.documents[1]?.notes.length).toBeGreaterThan(0);
    const markdown = await service.call('GET', `/v1/sessions/${session.sessionId}/notes`, { accept: 'text/markdown' });
    expect(markdown.text).not.toContain(DAP);

    if (dropped) session.documents.set(DAP, dropped);
    await refresh(session);
    const again = await until('the document is back', async () => {
      const notes = await notesOf(session.sessionId);
      return notes.documents.every(({ supersededAt }) => supersededAt === null) ? notes : null;
    });
    expect(again.documents[1]).toMatchObject({ noteTemplateId: DAP, revision: 1 });
  });

  it('a session that the platform does not know any more is gone and keeps its notes', async () => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    simulator.state.sessions.remove(session);
    await refresh(session);
    const view = await until('the session is gone', async () => {
      const now = await show(session.sessionId);
      return now.goneAt ? now : null;
    });
    expect(view.state).toBe('Done');
    expect((await notesOf(session.sessionId)).documents).toHaveLength(2);
    expect((await service.call('GET', `/v1/sessions/${session.sessionId}/recording-url`)).status).toBe(404);
  });
});

describe('refreshing', () => {
  it('a burst of events costs one or two fetches', async () => {
    const session = newSession({ noteTemplateIds: [SOAP, DAP] });
    toEnd(session);
    await read(session, 1);
    const before = fetches();
    const [{ wanted: earlier }] = await sql('SELECT wanted_generation AS wanted FROM sessions WHERE session_id = $1', [
      session.sessionId,
    ]);
    for (let copy = 0; copy < 20; copy += 1) {
      simulator.state.deliveries.send({
        eventType: 'SESSION_PROCESSING_NOTES_COMPLETED',
        sessionId: session.sessionId,
        providerUserId: provider,
        // Exact repeats are folded into one by the inbox.
        partnerAppointmentId: `appointment-${copy}`,
        aiNotesEnabled: true,
      });
    }
    await simulator.state.deliveries.settled();
    await until('every event is covered by a fetch', async () => {
      const [row] = await sql(
        'SELECT wanted_generation AS wanted, fetched_generation AS fetched FROM sessions WHERE session_id = $1',
        [session.sessionId],
      );
      return row?.wanted === row?.fetched && row?.wanted >= earlier + 20;
    });
    expect(fetches() - before).toBeLessThanOrEqual(2);
  });

  it('a platform that fails for a while is asked again, and nothing is lost', async () => {
    await callSimulator(simulator, 'POST', '/_simulator/faults', [
      { operation: 'getSession', kind: 'status', status: 503, count: 1 },
    ]);
    const session = newSession();
    toEnd(session);
    await read(session, 1);
  });

  it('a session whose end no event told is looked up by itself', async () => {
    const session = newSession();
    takeStep(simulator.state, session);
    await until('it was fetched while it was processed', async () => (await show(session.sessionId)).fetchedAt);
    expect((await show(session.sessionId)).state).toBe('Processing');
    simulator.state.settings = { ...simulator.state.settings, webhookDropRate: 1 };
    toEnd(session);
    simulator.state.settings = { ...simulator.state.settings, webhookDropRate: 0 };
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
    await shownAs(session.sessionId, 'Done');
  });

  it('a refused key stops all fetches and burns nobody’s attempts', async () => {
    const order = (rules: object[]) => callSimulator(simulator, 'POST', '/_simulator/faults', rules);
    await order([{ operation: 'getSession', kind: 'forbid' }]);
    const sessions = Array.from({ length: 8 }, () => newSession({ noteTemplateIds: [SOAP] }));
    for (const session of sessions) toEnd(session);
    const before = fetches();
    await until('the sessions count as failing', async () => {
      const counts = (await service.call('GET', '/v1/sessions/refreshes')).json<{ failing: number }>();
      return counts.failing > 0;
    });
    expect((await sql('SELECT max(strikes) AS strikes FROM sessions'))[0]?.strikes).toBe(0);
    await callSimulator(simulator, 'DELETE', '/_simulator/faults');
    for (const session of sessions) await read(session, 1);
    expect(fetches() - before).toBeLessThan(sessions.length * 2 + 8);
  });

  it('all sessions since a moment are fetched again on demand', async () => {
    const answer = await service.call('POST', '/v1/sessions/refreshes', { body: { since: '2026-01-01' } });
    expect(answer.json<{ sessions: number }>().sessions).toBeGreaterThan(5);
    await until('all were fetched', async () => {
      const { pending, failing } = (await service.call('GET', '/v1/sessions/refreshes')).json();
      return pending === 0 && failing === 0;
    });
    for (const body of [{}, { since: '2026-01-01', session: 'x' }, { since: 'yesterday' }]) {
      expect((await service.call('POST', '/v1/sessions/refreshes', { body })).status).toBe(400);
    }
    expect((await service.call('POST', '/v1/sessions/refreshes', { body: { session: 'x' } })).status).toBe(404);
  });

  it('deliveries that are shuffled, doubled and late end in the newest notes of every session', async () => {
    simulator.state.settings = { ...simulator.state.settings, webhookDuplicateRate: 0.3, webhookShuffleMs: 1_500 };
    const sessions = Array.from({ length: 20 }, () => newSession({ noteTemplateIds: [SOAP] }));
    for (const [index, session] of sessions.entries()) {
      toEnd(session);
      for (let round = 0; round < index % 4; round += 1) {
        beginRegeneration(simulator.state, session, [SOAP]);
        takeStep(simulator.state, session);
      }
    }
    await simulator.state.deliveries.settled();
    simulator.state.settings = { ...simulator.state.settings, webhookDuplicateRate: 0, webhookShuffleMs: 0 };
    for (const session of sessions) {
      const notes = await read(session, session.generation);
      expect(notes.documents).toHaveLength(1);
      const view = await show(session.sessionId);
      expect([view.state, view.aiNotesEnabled, view.aiNotesFinal]).toEqual(['Done', true, true]);
    }
  });

  it('without getSession events are kept, the EHR sees what they say, and a later start catches up', async () => {
    await service.close();
    await startService(['getSession']);
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
    const refused = await service.call('POST', '/v1/sessions/refreshes', { body: { session: session.sessionId } });
    expect(refused.status).toBe(501);
    expect(refused.text).toContain('operations.getSession');

    await service.close();
    await startService();
    await read(session, 1);
  });
});

describe('the processing API', () => {
  it.each(['processingId', 'sessionId'] as const)(
    'finds the session by a %s in a payload that the spec does not show',
    async (notesFinishedPayload) => {
      const session = newSession();
      toEnd(session);
      await read(session, 1);
      const [before] = await sql('SELECT wanted_generation FROM sessions WHERE session_id = $1', [session.sessionId]);
      const payload = { deep: [{ [notesFinishedPayload]: session[notesFinishedPayload] }] };
      simulator.state.deliveries.sendRaw(JSON.stringify({ eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload }));
      await until('the session is looked up again', async () => {
        const [row] = await sql('SELECT wanted_generation, fetched_generation FROM sessions WHERE session_id = $1', [
          session.sessionId,
        ]);
        return row?.wanted_generation > before?.wanted_generation && row?.fetched_generation === row?.wanted_generation;
      });
      expect(await sql('SELECT 1 FROM processing_notices')).not.toHaveLength(0);
    },
  );

  it('a PROCESSING_SESSION_FINISHED of a session of which nothing was heard makes it known', async () => {
    simulator.state.settings = { ...simulator.state.settings, webhookDropRate: 1 };
    const session = newSession();
    toEnd(session);
    simulator.state.settings = { ...simulator.state.settings, webhookDropRate: 0 };
    simulator.state.deliveries.send({
      eventType: 'PROCESSING_SESSION_FINISHED',
      payload: { processingId: session.processingId },
    });
    await read(session, 1);
  });
});

describe('jobs', () => {
  it('are recorded by their id, completed above failed, and told to the EHR', async () => {
    for (const eventType of ['COMPLIANCE_JOB_FAILED', 'COMPLIANCE_JOB_COMPLETED', 'COMPLIANCE_JOB_FAILED'] as const) {
      simulator.state.deliveries.send({ eventType, payload: { jobId: 'job-1' } });
    }
    simulator.state.deliveries.send({ eventType: 'SMART_EDIT_JOB_FAILED', payload: { jobId: 'job-2' } });
    await until('both are told', async () => {
      const { items } = (await service.call('GET', '/v1/events?limit=200')).json<Page<{ type: string }>>();
      const types = items.map(({ type }) => type);
      return types.includes('compliance.completed') && types.includes('smart-edit.failed');
    });
    expect(await sql('SELECT job_id, state FROM compliance_jobs')).toEqual([{ job_id: 'job-1', state: 'Completed' }]);
    expect(await sql('SELECT job_id, state FROM smart_edit_jobs')).toEqual([{ job_id: 'job-2', state: 'Failed' }]);
  });
});

const fetches = () => simulator.state.arrivals.list().filter(({ operation }) => operation === 'getSession').length;

/** Looked up on demand. */
async function refresh(session: SimulatedSession): Promise<void> {
  const answer = await service.call('POST', '/v1/sessions/refreshes', { body: { session: session.sessionId } });
  expect([answer.status, answer.json()]).toEqual([202, { sessions: 1 }]);
}
