import { OPTIONAL_FIELDS } from '../../simulator/sessions/optional-fields.js';
import { beginRegeneration, takeStep } from '../../simulator/sessions/session-run.js';
import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { NotesResponse, RevisionsResponse, SessionResponse } from '../../src/sessions/model/session-view.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { DAP, mirrorUser, SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { useArrivingSessions } from './arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { newSession, toEnd, show, shownAs, notesOf, read, refresh, regenerate, fetchAnother, unheard, tell } = sessions;

const get = async <Body>(path: string) => (await world.call<Body>('GET', `/v1/sessions/${path}`)).body;

describe('a session that arrives by webhooks', () => {
  it('is read with its notes, transcript and insights by our id and by the platform’s', async () => {
    const session = newSession({ partnerAppointmentId: 'appointment-1' });
    toEnd(session);
    await read(session, 1);
    const view = await show(session.sessionId);
    expect(view).toMatchObject({
      sessionId: session.sessionId,
      state: 'Done',
      partnerAppointmentId: 'appointment-1',
      provider: 'p-1',
      clients: ['c-1'],
      providerUserId: sessions.provider,
      clientUserIds: [sessions.client],
      noteTemplateIds: [SOAP, DAP],
      noteTemplates: [
        { id: SOAP, name: 'SOAP note' },
        { id: DAP, name: 'Progress note' },
      ],
      aiNotesEnabled: true,
      aiNotesFinal: true,
      error: null,
      date: '2026-03-01T09:00:00.000Z',
      notesRevision: 1,
      goneAt: null,
    });
    expect(view.recordingDurationMs).toBeGreaterThan(0);
    expect(await show(view.id)).toEqual(view);
    const { documents } = await notesOf(view.id);
    expect(documents).toMatchObject([
      { noteTemplateId: SOAP, noteTemplateName: 'SOAP note', revision: 1 },
      { noteTemplateId: DAP, noteTemplateName: 'Progress note', revision: 1 },
    ]);
    const transcript = await world.call<{ utterances: unknown[] }>('GET', `/v1/sessions/${view.id}/transcript`);
    expect(transcript.body.utterances.length).toBeGreaterThan(5);
    expect(transcript.headers.get('cache-control')).toBe('no-store');
    expect(await get(`${view.id}/insights`)).toMatchObject({
      topics: expect.any(Array),
      namedEntities: expect.any(Array),
      analyticsSummary: { talkingRatio: expect.anything() },
    });
  });

  it('is reported to the EHR: created, started, its transcript, and failed with its code', async () => {
    const session = newSession();
    session.willFail = true;
    // Webhooks in flight together may overtake each other.
    for (await world.settle(); session.nextStep; await world.settle())
      takeStep(world.platform.simulator.state, session);
    const { id, error } = await shownAs(session.sessionId, 'Error');
    expect(error).toEqual({ code: 'low-content-transcript', message: expect.stringContaining('audio') });
    const { items } = (await world.call<Page<FeedEventResponse>>('GET', '/v1/events?limit=200')).body;
    const types = items.filter(({ subject }) => subject === `sessions/${id}`).map(({ type }) => type);
    expect(types).toEqual([
      'session.created',
      'session.processing-started',
      'session.transcript-ready',
      'session.failed',
    ]);
  });

  it('is listed by provider, client, appointment, state and change, page by page', async () => {
    const [done, failed] = [newSession({ partnerAppointmentId: 'a-1' }), newSession({ partnerAppointmentId: 'a-2' })];
    failed.willFail = true;
    for (const session of [done, failed]) {
      toEnd(session);
      await world.settle();
    }
    const page = async (query: string) =>
      (await world.call<Page<SessionResponse>>('GET', `/v1/sessions?${query}`)).body;
    const listed = async (query: string) => (await page(query)).items.map(({ state }) => state);
    expect(await listed('provider=p-1&client=c-1')).toEqual(['Done', 'Error']);
    expect(await listed('provider=p-2')).toEqual([]);
    expect(await listed('client=c-2')).toEqual([]);
    expect(await listed('state=Error')).toEqual(['Error']);
    expect(await listed('appointment=a-1')).toEqual(['Done']);
    expect(await listed(`updatedSince=${(await show(failed.sessionId)).updatedAt}`)).toEqual(['Error']);
    for (const [order, states] of Object.entries({
      'oldest-first': ['Done', 'Error'],
      'newest-first': ['Error', 'Done'],
    })) {
      const first = await page(`limit=1&order=${order}`);
      const second = await page(`limit=1&order=${order}&cursor=${first.nextCursor}`);
      expect([...first.items, ...second.items].map(({ state }) => state)).toEqual(states);
    }
    for (const query of ['cursor=WyJ4IiwieSJd', 'updatedSince=yesterday']) {
      expect((await world.call('GET', `/v1/sessions?${query}`)).status).toBe(400);
    }
  });

  it('is stored for an unknown provider, and shows the provider once it is mirrored', async () => {
    const provider = {
      role: 'HealthcareProvider',
      email: 'late@example.test',
      firstName: 'Di',
      lastName: 'Fox',
    } as const;
    const { userId: providerUserId } = world.platform.simulator.state.users.add({ ...provider, providerUserIds: [] });
    const session = newSession({ providerUserId });
    toEnd(session);
    await read(session, 1);
    expect(await show(session.sessionId)).toMatchObject({ provider: null, providerUserId });
    await mirrorUser(world, 'p-late', providerUserId);
    expect(await show(session.sessionId)).toMatchObject({ provider: 'p-late', providerUserId });
  });

  it('has its notes as Markdown and as a FHIR R4 Bundle by Accept; other forms are rejected', async () => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    const as = (accept: string) => world.call('GET', `/v1/sessions/${session.sessionId}/notes`, { accept });
    const markdown = await as('text/markdown');
    expect(markdown.headers.get('content-type')).toBe('text/markdown; charset=utf-8');
    expect(markdown.text).toMatch(/^# Session notes\n[\s\S]*### Plan/);
    const fhir = await as('application/fhir+json;q=0.9, text/html');
    expect(fhir.headers.get('content-type')).toBe('application/fhir+json; charset=utf-8');
    expect(fhir.body).toMatchObject({ resourceType: 'Bundle', type: 'collection' });
    expect((await as('text/html')).status).toBe(406);
  });

  it('keeps no recording URL and no readable clinical text in the database', async () => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    const answer = await world.call<{ url: string }>('GET', `/v1/sessions/${session.sessionId}/recording-url`);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const tables = ['sessions', 'session_documents', 'document_revisions', 'session_insights'];
    const values = (await Promise.all(tables.map((table) => world.sql(`SELECT * FROM ${table}`))))
      .flat()
      .flatMap(Object.values);
    const bytes = values.filter((value) => Buffer.isBuffer(value));
    expect(bytes.length).toBeGreaterThan(5);
    const stored = JSON.stringify(values) + Buffer.concat(bytes).toString('latin1');
    expect(stored).not.toContain(new URL(answer.body.url).pathname);
    expect(stored).not.toMatch(/warehouse|Generation|utterances/);
  });

  it('keeps its id when the answer to a request names it later; the id of the request leads to it', async () => {
    const body = {
      provider: 'p-1',
      client: 'c-1',
      noteTemplateIds: [SOAP],
      input: { text: { text: 'x' } },
      date: '2026-03-01T09:00:00Z',
      partnerAppointmentId: 'a-1',
    };
    const { id } = (await world.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 0 })).body;
    world.platform.set({ webhookDropRate: 1 });
    const held = await world.untilHeld({ operation: 'createSession' });
    world.platform.set({ webhookDropRate: 0 });
    const [session] = world.platform.simulator.state.sessions.list();
    if (!session) throw new Error('The platform has no session.');
    world.platform.injectFault({ operation: 'getSession', kind: 'status', status: 503 });
    // Without an appointment it belongs to no request that is known here.
    tell({ eventType: 'SESSION_CREATED', sessionId: session.sessionId, providerUserId: null, aiNotesEnabled: true });
    await world.settle();
    const first = await show(session.sessionId);
    expect([first.id === id, first.clients, first.date]).toEqual([false, [], null]);
    await unheard(() => held.answer());
    const shown = { id: first.id, provider: 'p-1', clients: ['c-1'], aiNotesEnabled: true };
    const facts = { ...shown, sessionId: session.sessionId, partnerAppointmentId: 'a-1' };
    await world.settle();
    for (const each of [id, first.id, session.sessionId])
      expect(await show(each)).toMatchObject({ ...facts, date: body.date });
    toEnd(session);
    await world.advance('1 min');
    await world.settle();
    const contentsOf = async (of: string) => [
      await get(`${of}/transcript`),
      await get(`${of}/insights`),
      await notesOf(of),
    ];
    const contents = await contentsOf(id);
    for (const each of [first.id, session.sessionId]) expect(await contentsOf(each)).toEqual(contents);
    const { items } = (await world.call<Page<SessionResponse>>('GET', '/v1/sessions')).body;
    expect(items.map((item) => [item.id, item.state])).toEqual([[first.id, 'Done']]);
    const eventsOf = async (query: string) =>
      (await world.call<Page<FeedEventResponse>>('GET', `/v1/events?limit=200${query}`)).body.items;
    const published = (await eventsOf('')).filter(({ type }) => type.startsWith('session.'));
    expect([...new Set(published.map(({ subject }) => subject))]).toEqual([`sessions/${first.id}`]);
    expect(published.filter(({ type }) => type === 'session.merged')).toMatchObject([{ data: { id, into: first.id } }]);
    for (const each of [id, first.id]) expect(await eventsOf(`&subject=sessions/${each}`)).toEqual(published);
  });
});

describe('notes that change', () => {
  const revisionsOf = (id: string, documentId: string | undefined, query = '') =>
    get<RevisionsResponse>(`${id}/notes/${documentId}/revisions${query}`);

  it('have a second version after two events with identical bodies', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    const [before] = (await read(session, 1)).documents;
    regenerate(session);
    const after = await read(session, 2);
    const bodies = world.platform.simulator.state.deliveries.list().map(({ body }) => body);
    const [first, second] = bodies.filter((body) => body.includes('NOTES_COMPLETED'));
    expect(second).toBe(first);
    expect(after).toMatchObject({ notesRevision: 2, documents: [{ documentId: before?.documentId, revision: 2 }] });

    const { items } = await revisionsOf(session.sessionId, before?.documentId);
    expect(items.map(({ revision }) => revision)).toEqual([2, 1]);
    expect(items[1]?.notes[0]?.text).toContain('(Generation 1.)');
    const newest = await revisionsOf(session.sessionId, before?.documentId, '?limit=1');
    const older = await revisionsOf(session.sessionId, before?.documentId, `?limit=1&cursor=${newest.nextCursor}`);
    expect([...newest.items, ...older.items]).toEqual(items);
    expect(await revisionsOf(session.sessionId, before?.documentId, '?limit=0')).toMatchObject({ status: 400 });
  });

  it('have a second version after an exact repeat of an event', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await read(session, 1);
    const event = signed(sessionEvent(session.sessionId));
    expect((await deliver(world, event)).status).toBe(204);
    await world.settle();
    unheard(() => regenerate(session));
    expect((await deliver(world, event)).status).toBe(204);
    expect((await read(session, 2)).notesRevision).toBe(2);
  });

  it('stay in the chain of their template when their sessionDocumentId changes', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    const [before] = (await read(session, 1)).documents;
    world.platform.set({ documentIds: 'fresh' });
    regenerate(session);
    const { documents } = await read(session, 2);
    expect(documents).toMatchObject([{ documentId: before?.documentId }]);
    expect(documents[0]?.sessionDocumentId).not.toBe(before?.sessionDocumentId);
    expect((await revisionsOf(session.sessionId, before?.sessionDocumentId)).items).toHaveLength(2);
  });

  it('are superseded when their document disappears, and come back with it', async () => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    const dropped = session.documents.get(DAP);
    session.documents.delete(DAP);
    await refresh(session);
    const { documents } = await read(session, 1);
    expect(documents).toMatchObject([
      { noteTemplateId: SOAP, supersededAt: null },
      { noteTemplateId: DAP, supersededAt: expect.any(String) },
    ]);
    expect(documents[1]?.notes).not.toEqual([]);
    const path = `/v1/sessions/${session.sessionId}/notes`;
    expect((await world.call('GET', path, { accept: 'text/markdown' })).text).not.toContain(DAP);
    if (dropped) session.documents.set(DAP, dropped);
    await refresh(session);
    const again = await read(session, 1);
    expect(again.documents[1]).toMatchObject({ noteTemplateId: DAP, revision: 1, supersededAt: null });
  });

  it('stay unchanged, like all else, if a later answer omits them', async () => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    const shown = async () => [
      await notesOf(session.sessionId),
      await get(`${session.sessionId}/transcript`),
      await get(`${session.sessionId}/insights`),
      { ...(await show(session.sessionId)), fetchedAt: null, updatedAt: null },
    ];
    const before = await shown();
    world.platform.set({ doneLeavesOut: [...OPTIONAL_FIELDS] });
    const fetches = sessions.fetches();
    await refresh(session);
    await world.settle();
    expect([await shown(), sessions.fetches()]).toEqual([before, fetches + 1]);
  });

  it.each([
    ['lines', { notes: 'none' }],
    ['id', { sessionDocumentId: 'a\0b' }],
  ])('are stored despite a document whose %s cannot be read', async (_what, odd) => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    session.documents.set(SOAP, { ...session.documents.get(SOAP), ...odd } as never);
    beginRegeneration(world.platform.simulator.state, session, [DAP]);
    toEnd(session);
    expect((await read(session, 2)).documents).toMatchObject([
      { noteTemplateId: SOAP, revision: 1, supersededAt: null },
      { noteTemplateId: DAP, revision: 2, supersededAt: null },
    ]);
  });

  it('are kept when the platform no longer knows their session', async () => {
    const session = newSession();
    toEnd(session);
    await read(session, 1);
    world.platform.simulator.state.sessions.remove(session);
    await refresh(session);
    await fetchAnother();
    const { goneAt } = await shownAs(session.sessionId, 'Done');
    expect(goneAt).not.toBeNull();
    expect((await get<NotesResponse>(`${session.sessionId}/notes`)).documents).toHaveLength(2);
    expect((await world.call('GET', `/v1/sessions/${session.sessionId}/recording-url`)).status).toBe(404);
  });
});
