import { until } from '../harness/until.js';
import { OPTIONAL_FIELDS } from '../simulator/sessions/optional-fields.js';
import { beginRegeneration, takeStep } from '../simulator/sessions/session-run.js';
import type { Page } from '../src/http/request/page.js';
import type { RevisionsResponse, SessionResponse } from '../src/sessions/model/session-view.js';
import { DAP, SOAP, useArrivingSessions } from './support/arriving-sessions.js';
import { newSimulatedProvider } from './support/simulator-call.js';
import { deliver, sessionEvent, signed } from './support/webhook-requests.js';

const world = useArrivingSessions();
const { newSession, toEnd, show, shownAs, notesOf, read, refresh, heardAll, rested, sql } = world;

/** How many wishes for a fetch no answer covers yet. */
const generations = async (sessionId: string): Promise<{ open: number }> =>
  (
    await sql('SELECT wanted_generation - fetched_generation AS open FROM sessions WHERE session_id = $1', [sessionId])
  )[0];

describe('a session that arrives by webhooks', () => {
  it('is read with its notes, transcript and insights by our id and by that of the platform', async () => {
    const session = newSession({ partnerAppointmentId: 'appointment-1' });
    toEnd(session);
    await read(session, 1);
    await rested(session);
    const view = await show(session.sessionId);
    expect(view).toMatchObject({
      sessionId: session.sessionId,
      state: 'Done',
      partnerAppointmentId: 'appointment-1',
      provider: 'p-1',
      clients: ['c-1'],
      providerUserId: world.provider,
      clientUserIds: [world.client],
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
    const transcript = await world.service.call('GET', `/v1/sessions/${view.id}/transcript`);
    expect(transcript.json<{ utterances: unknown[] }>().utterances.length).toBeGreaterThan(5);
    expect(transcript.headers.get('cache-control')).toBe('no-store');
    const insights = (await world.service.call('GET', `/v1/sessions/${view.id}/insights`)).json();
    expect(insights).toMatchObject({ topics: expect.any(Array), namedEntities: expect.any(Array) });
    expect(insights.analyticsSummary).toHaveProperty('talkingRatio');
  });

  it('is told to the EHR: created, its notes ready, and a failure with its code', async () => {
    const session = newSession({ partnerAppointmentId: 'appointment-2' });
    session.willFail = true;
    // One after the other: webhooks that are under way together may overtake each other.
    for (await heardAll(); session.nextStep; await heardAll()) takeStep(world.simulator.state, session);
    await shownAs(session.sessionId, 'Error');
    const view = await until('the error was fetched', async () => {
      const now = await show(session.sessionId);
      return now.error ? now : null;
    });
    expect(view.error).toEqual({ code: 'low-content-transcript', message: expect.stringContaining('audio') });
    const events = await until('the feed tells of all', async () => {
      const { items } = (await world.service.call('GET', '/v1/events?limit=200')).json<
        Page<{ type: string; subject: string }>
      >();
      // What the platform sends again, because its answer was late, may be told again.
      const types = new Set(items.filter(({ subject }) => subject === `sessions/${view.id}`).map(({ type }) => type));
      return types.size >= 3 ? [...types] : null;
    });
    expect(events).toEqual(['session.created', 'session.processing-started', 'session.failed']);
    await rested(session);
  });

  it('is listed by provider, client, appointment, state and change, page by page', async () => {
    const page = async (query: string) =>
      (await world.service.call('GET', `/v1/sessions?${query}`)).json<Page<SessionResponse>>();
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
    const newest = await page('limit=1&order=newest-first');
    expect(newest.items).toMatchObject([{ state: 'Error' }]);
    const { items: older } = await page(`limit=1&order=newest-first&cursor=${newest.nextCursor}`);
    expect(older).toMatchObject([{ state: 'Done' }]);
    expect((await world.service.call('GET', '/v1/sessions?cursor=WyJ4IiwieSJd')).status).toBe(400);
    expect((await world.service.call('GET', '/v1/sessions?updatedSince=yesterday')).status).toBe(400);
  });

  it('of a provider whom nobody named yet is kept, and is shown under the provider once it is mirrored', async () => {
    const providerUserId = await newSimulatedProvider(world.simulator, 'late@example.test');
    const session = newSession({ providerUserId, partnerAppointmentId: 'appointment-early' });
    toEnd(session);
    await read(session, 1);
    expect(await show(session.sessionId)).toMatchObject({ provider: null, providerUserId });
    await sql(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id)
       VALUES (gen_random_uuid(), 'provider', 'p-late', '', '', $1)`,
      [providerUserId],
    );
    await world.linkPeople();
    expect(await show(session.sessionId)).toMatchObject({ provider: 'p-late', providerUserId });
  });

  it('has its notes as Markdown and as a FHIR R4 Bundle when Accept says so, and refuses other forms', async () => {
    const path = `/v1/sessions/${newSessionId()}/notes`;
    const markdown = await world.service.call('GET', path, { accept: 'text/markdown' });
    expect(markdown.headers.get('content-type')).toBe('text/markdown; charset=utf-8');
    expect(markdown.text).toMatch(/^# Session notes\n/);
    expect(markdown.text).toContain('### Plan');
    const fhir = await world.service.call('GET', path, { accept: 'application/fhir+json;q=0.9, text/html' });
    expect(fhir.headers.get('content-type')).toBe('application/fhir+json; charset=utf-8');
    expect(fhir.json()).toMatchObject({ resourceType: 'Bundle', type: 'collection' });
    expect((await world.service.call('GET', path, { accept: 'text/html' })).status).toBe(406);
  });

  it('gives out a recording URL on demand and stores it nowhere', async () => {
    const answer = await world.service.call('GET', `/v1/sessions/${newSessionId()}/recording-url`);
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

  const newSessionId = () => world.simulator.state.sessions.list()[0]?.sessionId ?? '';
});

describe('notes that change', () => {
  it('two genuine events with identical bodies, the second after a regeneration: the second version is stored', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    const before = await read(session, 1);
    beginRegeneration(world.simulator.state, session, [SOAP]);
    takeStep(world.simulator.state, session);
    const bodies = world.simulator.state.deliveries
      .list()
      .map(({ body }) => body)
      .filter((body) => body.includes(session.sessionId) && body.includes('NOTES_COMPLETED'));
    expect(bodies).toHaveLength(2);
    expect(bodies[0]).toBe(bodies[1]);

    const after = await read(session, 2);
    expect(after.documents).toMatchObject([{ documentId: before.documents[0]?.documentId, revision: 2 }]);
    expect(after.notesRevision).toBe(2);
    const path = `/v1/sessions/${session.sessionId}/notes/${after.documents[0]?.documentId}/revisions`;
    const revisions = (await world.service.call('GET', path)).json<RevisionsResponse>();
    expect(revisions.items.map(({ revision }) => revision)).toEqual([2, 1]);
    expect(revisions.items[1]?.notes[0]?.text).toContain('(Generation 1.)');
    const page = async (cursor = '') =>
      (await world.service.call('GET', `${path}?limit=1${cursor}`)).json<RevisionsResponse>();
    const newest = await page();
    expect(newest.items).toEqual(revisions.items.slice(0, 1));
    expect(await page(`&cursor=${newest.nextCursor}`)).toEqual({ ...revisions, items: revisions.items.slice(1) });
    expect((await world.service.call('GET', `${path}?limit=0`)).status).toBe(400);
  });

  it('an exact repeat of an event after a regeneration, the same to its signature, brings the second version too', async () => {
    const { state } = world.simulator;
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await read(session, 1);
    const event = signed(sessionEvent(session.sessionId), { secret: state.settings.webhookSecret });
    const send = async () => (await deliver(world.service, event)).status;
    expect(await send()).toBe(204);
    await until('it is covered by a fetch', async () => (await generations(session.sessionId)).open === 0);

    state.settings = { ...state.settings, webhookDropRate: 1 };
    beginRegeneration(state, session, [SOAP]);
    takeStep(state, session);
    state.settings = { ...state.settings, webhookDropRate: 0 };
    expect(await send()).toBe(204);
    expect((await read(session, 2)).notesRevision).toBe(2);
  });

  it('a sessionDocumentId that changes stays in the chain of its template', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    const before = await read(session, 1);
    world.simulator.state.settings = { ...world.simulator.state.settings, documentIds: 'fresh' };
    beginRegeneration(world.simulator.state, session, [SOAP]);
    takeStep(world.simulator.state, session);
    world.simulator.state.settings = { ...world.simulator.state.settings, documentIds: 'stable' };
    const after = await read(session, 2);
    expect(after.documents).toHaveLength(1);
    expect(after.documents[0]?.documentId).toBe(before.documents[0]?.documentId);
    expect(after.documents[0]?.sessionDocumentId).not.toBe(before.documents[0]?.sessionDocumentId);
    const byOldId = `/v1/sessions/${session.sessionId}/notes/${before.documents[0]?.sessionDocumentId}/revisions`;
    expect((await world.service.call('GET', byOldId)).json<RevisionsResponse>().items).toHaveLength(2);
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
    const markdown = await world.service.call('GET', `/v1/sessions/${session.sessionId}/notes`, {
      accept: 'text/markdown',
    });
    expect(markdown.text).not.toContain(DAP);

    if (dropped) session.documents.set(DAP, dropped);
    await refresh(session);
    const again = await until('the document is back', async () => {
      const notes = await notesOf(session.sessionId);
      return notes.documents.every(({ supersededAt }) => supersededAt === null) ? notes : null;
    });
    expect(again.documents[1]).toMatchObject({ noteTemplateId: DAP, revision: 1 });
  });

  it('what an answer about a Done session leaves out stays as it is known; a document that can not be read hides no other', async () => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    await rested(session);
    const before = await notesOf(session.sessionId);
    const settings = world.simulator.state.settings;
    const shown = async () => ({
      transcript: (await world.service.call('GET', `/v1/sessions/${session.sessionId}/transcript`)).json(),
      insights: (await world.service.call('GET', `/v1/sessions/${session.sessionId}/insights`)).json(),
      duration: (await show(session.sessionId)).recordingDurationMs,
    });
    const full = await until('all was fetched', async () => {
      const now = await shown();
      return now.insights.analyticsSummary ? now : undefined;
    });
    world.simulator.state.settings = { ...settings, doneLeavesOut: [...OPTIONAL_FIELDS] };
    const { fetchedAt } = await show(session.sessionId);
    await refresh(session);
    await until('it was fetched again', async () => (await show(session.sessionId)).fetchedAt !== fetchedAt);
    world.simulator.state.settings = settings;
    expect(await notesOf(session.sessionId)).toEqual(before);
    expect(await shown()).toEqual(full);

    const soap = session.documents.get(SOAP);
    session.documents.set(SOAP, { ...soap, notes: 'none' } as never);
    beginRegeneration(world.simulator.state, session, [DAP]);
    takeStep(world.simulator.state, session);
    const after = await read(session, 2);
    expect(after.documents).toMatchObject([
      { noteTemplateId: SOAP, revision: 1, supersededAt: null },
      { noteTemplateId: DAP, revision: 2, supersededAt: null },
    ]);
  });

  it('a session that the platform does not know any more is gone and keeps its notes', async () => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    world.simulator.state.sessions.remove(session);
    await refresh(session);
    const view = await until('the session is gone', async () => {
      const now = await show(session.sessionId);
      return now.goneAt ? now : null;
    });
    expect(view.state).toBe('Done');
    expect((await notesOf(session.sessionId)).documents).toHaveLength(2);
    expect((await world.service.call('GET', `/v1/sessions/${session.sessionId}/recording-url`)).status).toBe(404);
  });
});
