import { until } from '../harness/until.js';
import type { FaultKind, FaultRule } from '../simulator/gate/fault-rule.js';
import type { SimulatedSession } from '../simulator/sessions/session.js';
import { takeStep } from '../simulator/sessions/session-run.js';
import { PlatformClient } from '../src/platform/clients/platform-client.js';
import { PlatformError } from '../src/platform/contract/platform-errors.js';
import type { NotesResponse, SessionResponse } from '../src/sessions/model/session-view.js';
import { SessionReader } from '../src/sessions/read/session-reader.js';
import { RefreshRepository } from '../src/sessions/refresh/refresh.repository.js';
import { WantedRefreshes } from '../src/sessions/refresh/wanted-refreshes.repository.js';
import { DAP, type Refused, type RequestsApp, SOAP, startRequestsApp } from './support/session-requests-app.js';

let app: RequestsApp;

beforeAll(async () => {
  app = await startRequestsApp();
});

afterAll(() => app?.close());

const TEXT = { text: { text: 'First notes of the provider.' } };
const RECORDING = {
  recording: { recordingUrls: ['https://files.example.test/1.wav'], recordingContent: 'Recording' },
};
let appointments = 0;

const simulated = (sessionId: string | null) => app.simulator.state.sessions.find(sessionId ?? '');

/** A session that was asked for here and whose first notes are there. */
async function done(input: object = TEXT): Promise<SessionResponse> {
  const body = {
    provider: 'p-1',
    client: 'c-1',
    noteTemplateIds: [SOAP],
    input,
    partnerAppointmentId: `visit-${++appointments}`,
  };
  const { id, sessionId } = (
    await app.service.call('POST', '/v1/sessions', { body, wait: 60 })
  ).json<SessionResponse>();
  finish(sessionId);
  await app.simulator.state.deliveries.settled();
  // No event is left that would have it fetched once more.
  await until('it was fetched after its last event', async () => {
    const [open] = await app.sql(
      `SELECT 1 FROM webhook_deliveries WHERE due_at IS NOT NULL
       UNION ALL SELECT 1 FROM sessions WHERE id = $1 AND wanted_generation > fetched_generation`,
      [id],
    );
    return !open;
  });
  const session = await app.show(id);
  expect([session.state, session.notesRevision]).toEqual(['Done', 1]);
  return session;
}

const standing = new Map<object, Promise<SessionResponse>>();

/** The one session with this input that no test changes. */
function unchanged(input: object = TEXT): Promise<SessionResponse> {
  const known = standing.get(input) ?? done(input);
  standing.set(input, known);
  return known;
}

function finish(sessionId: string | null): void {
  const session = simulated(sessionId);
  while (session?.nextStep) takeStep(app.simulator.state, session);
}

async function update(id: string, body: unknown) {
  const answer = await app.service.call('PATCH', `/v1/sessions/${id}`, { body });
  return { status: answer.status, headers: answer.headers, body: answer.json<SessionResponse & Refused>() };
}

function fail(message: string): never {
  throw new Error(message);
}

const callsDuring = async (work: () => Promise<unknown>) => {
  const before = app.arrivals('updateSession');
  await work();
  return app.arrivals('updateSession') - before;
};

describe('an update', () => {
  it('finds its session again when another row absorbed it between the two looks', async () => {
    const { id } = await done();
    const beginning = jest.spyOn(app.service.app.get(WantedRefreshes), 'beginUpdate').mockResolvedValueOnce(undefined);
    const { status, body } = await update(id, { noteTemplateIds: [DAP] });
    beginning.mockRestore();
    expect([status, body.id]).toEqual([200, id]);
  });

  it('is answered with the session as the platform then has it, and its new notes follow', async () => {
    const session = await done();
    const { status, body } = await update(session.id, { input: { text: 'Second notes.' }, noteTemplateIds: [DAP] });
    expect([status, body.id, body.state, body.noteTemplateIds]).toEqual([200, session.id, 'Processing', [SOAP, DAP]]);
    expect(simulated(session.sessionId)?.input).toEqual({ kind: 'text', text: 'Second notes.' });
    finish(session.sessionId);
    const notes = await until('the new notes are there', async () => {
      const { documents } = (await app.service.call('GET', `/v1/sessions/${session.id}/notes`)).json<NotesResponse>();
      return documents.length === 2 ? documents : undefined;
    });
    expect(notes.map(({ noteTemplateId }) => noteTemplateId)).toEqual([SOAP, DAP]);
  });

  it('takes the platform’s sessionId in the place of ours', async () => {
    const session = await done();
    const { status, body } = await update(session.sessionId ?? '', { externalTreatmentPlan: 'A plan.' });
    expect([status, body.id]).toEqual([200, session.id]);
    expect(simulated(session.sessionId)?.externalTreatmentPlan).toBe('A plan.');
  });

  it.each<[string, object, object, object]>([
    ['noteTemplateIds', TEXT, { noteTemplateIds: '' }, { externalTreatmentPlan: 'A plan.' }],
    ['externalTreatmentPlan', TEXT, { externalTreatmentPlan: '\n ' }, { noteTemplateIds: [SOAP] }],
    ['speakerMapping', TEXT, { speakerMapping: '' }, { externalTreatmentPlan: 'A plan.' }],
    ['input', RECORDING, { input: ' ' }, { externalTreatmentPlan: 'A plan.' }],
  ])('takes a blank text for %s as left out', async (_field, input, blank, change) => {
    const session = await unchanged(input);
    const seen = jest
      .spyOn(app.service.app.get(PlatformClient), 'updateSession')
      .mockRejectedValue(new PlatformError('rejected', 'updateSession', { status: 400 }));
    try {
      expect((await update(session.id, { ...change, ...blank })).body.type).toContain('platform-rejected');
      expect(seen.mock.calls).toEqual([[session.sessionId, change]]);
      expect((await update(session.id, blank)).body).toMatchObject({ status: 400, pointer: '' });
    } finally {
      seen.mockRestore();
    }
  });

  it('leaves out what is omitted, null or blank', async () => {
    const session = await done(RECORDING);
    const speakerMapping = { A: app.client, B: app.provider };
    const blank = { externalTreatmentPlan: '  ', noteTemplateIds: [], input: { text: ' ' } };
    const { status } = await update(session.id, { ...blank, speakerMapping });
    expect(status).toBe(200);
    expect(simulated(session.sessionId)).toMatchObject({ speakerMapping, noteTemplateIds: [SOAP] });
  });

  it.each<[string, object, object, string]>([
    ['nothing in it', TEXT, {}, ''],
    [
      'only blank fields',
      TEXT,
      { externalTreatmentPlan: '', noteTemplateIds: [], speakerMapping: {}, input: null },
      '',
    ],
    ['a speaker mapping for a text', TEXT, { speakerMapping: { A: SOAP } }, '/speakerMapping'],
    ['an input text for a recording', RECORDING, { input: { text: 'x' } }, '/input'],
    ['a template id that is no UUID', TEXT, { noteTemplateIds: ['soap'] }, '/noteTemplateIds'],
    ['a user that is no UUID', RECORDING, { speakerMapping: { A: 'ada' } }, '/speakerMapping/A'],
    [
      'a plan that is too long by what is not seen',
      TEXT,
      { externalTreatmentPlan: '\uFE0F'.repeat(100_001) },
      '/externalTreatmentPlan',
    ],
    ['a plan that is too long', TEXT, { externalTreatmentPlan: 'x'.repeat(100_001) }, '/externalTreatmentPlan'],
    ['the text where a create has it', TEXT, { input: { text: { text: 'x' } } }, '/input/text'],
    ['an unknown field', TEXT, { date: '2026-01-01' }, '/date'],
  ])('with %s is refused before any call', async (_name, input, change, pointer) => {
    const session = await unchanged(input);
    const calls = await callsDuring(async () => {
      const { body } = await update(session.id, change);
      expect([body.status, body.pointer]).toEqual([400, pointer]);
    });
    expect(calls).toBe(0);
  });

  it('of a session that was not asked for here: the platform judges what applies', async () => {
    const session = await done(RECORDING);
    await app.sql('DELETE FROM session_requests WHERE session = $1', [session.id]);
    const { status, body } = await update(session.id, { input: { text: 'x' } });
    expect([status, body.type]).toEqual([400, 'urn:notebridge:problem:platform-rejected']);
    expect(body.platformMessage).toMatch(/recording/);
  });

  it.each<[string, Partial<SimulatedSession>, RegExp]>([
    ['the session is in Processing', { state: 'Processing' }, /being processed/],
    ['the session is in Error', { state: 'Error' }, /has failed/],
    ['the transcript was deleted', { transcriptDeleted: true }, /transcript/],
    ['a note was edited by hand', { editedByHand: true }, /edited/],
  ])('while %s is the platform’s to refuse: its message is passed on', async (_rule, situation, message) => {
    const session = await unchanged();
    const onPlatform = simulated(session.sessionId) ?? fail('The platform has no such session.');
    const { state, transcriptDeleted, editedByHand } = onPlatform;
    Object.assign(onPlatform, situation);
    const calls = await callsDuring(async () => {
      const { status, body } = await update(session.id, { input: { text: 'Second notes.' } });
      expect([status, body.type]).toEqual([400, 'urn:notebridge:problem:platform-rejected']);
      expect(body.platformMessage).toMatch(message);
    });
    Object.assign(onPlatform, { state, transcriptDeleted, editedByHand });
    expect(calls).toBe(1);
  });

  it.each<[string, Partial<FaultRule>, number, string, string | null]>([
    ['400', { kind: 'status', status: 400 }, 400, 'platform-rejected', null],
    ['403', { kind: 'forbid' }, 503, 'platform-unauthorized', '60'],
    ['404', { kind: 'status', status: 404 }, 404, 'not-on-platform', null],
    ['429 that asks for 7 s', { kind: 'rate-limit', retryAfterSeconds: 7 }, 503, 'platform-rate-limited', '7'],
    ['429 that asks for no time', { kind: 'rate-limit', retryAfter: 'absent' }, 503, 'platform-rate-limited', '5'],
  ])('the platform’s %s changes nothing, and is not sent again', async (_name, rule, status, type, retryAfter) => {
    const session = await unchanged();
    app.trouble({ operation: 'updateSession', kind: 'forbid', ...rule });
    const calls = await callsDuring(async () => {
      const answer = await update(session.id, { externalTreatmentPlan: 'A plan.' });
      expect([answer.status, answer.body.type]).toEqual([status, `urn:notebridge:problem:${type}`]);
      expect(answer.headers.get('retry-after')).toBe(retryAfter);
    });
    const now = await app.show(session.id);
    expect([calls, now]).toEqual([1, { ...session, fetchedAt: now.fetchedAt }]);
  });

  const leaving = (settings: object) => Object.assign(app.simulator.state.settings, settings);
  const contents = async ({ id }: SessionResponse) => ({
    documents: (await app.service.call('GET', `/v1/sessions/${id}/notes`)).json<NotesResponse>().documents,
    transcript: (await app.service.call('GET', `/v1/sessions/${id}/transcript`)).json(),
    insights: (await app.service.call('GET', `/v1/sessions/${id}/insights`)).json(),
  });

  it('that is answered with the required fields alone erases nothing, and what it changed is fetched although no event tells of it', async () => {
    const session = await done(RECORDING);
    const before = await contents(session);
    expect(before.documents).toMatchObject([{ supersededAt: null, revision: 1 }]);
    leaving({ updateAnswer: 'lean', webhookDropRate: 1 });
    const { status, body } = await update(session.id, { noteTemplateIds: [DAP] });
    expect(status).toBe(200);
    const { state, noteTemplateIds, fetchedAt, updatedAt, notesRevision } = body;
    expect(body).toEqual({ ...session, state, noteTemplateIds, fetchedAt, updatedAt, notesRevision });
    expect(body.recordingDurationMs).toBeGreaterThan(0);
    expect(await contents(session)).toEqual(before);
    finish(session.sessionId);
    leaving({ updateAnswer: 'whole', webhookDropRate: 0 });
    await until('the new document is fetched', async () => (await contents(session)).documents.length === 2);
    expect((await contents(session)).documents.map(({ supersededAt }) => supersededAt)).toEqual([null, null]);
  });

  it('is on record before it leaves: a fetch follows it although its answer and its event are lost with the process', async () => {
    const session = await done();
    const open = async () =>
      (
        await app.sql<{ wanted: number; is_due: boolean }>(
          `SELECT wanted_generation - fetched_generation AS wanted, due_at IS NOT NULL AND update_until IS NOT NULL AS is_due
           FROM sessions WHERE id = $1`,
          [session.id],
        )
      )[0];
    expect(await open()).toEqual({ wanted: 0, is_due: false });
    const seen: unknown[] = [];
    const platform = app.service.app.get(PlatformClient);
    const call = jest.spyOn(platform, 'updateSession').mockImplementation(async () => {
      seen.push(await open());
      await app.service.call('POST', '/v1/sessions/refreshes', { body: { session: session.id } });
      await until('a fetch that began before the update took effect is stored', async () => {
        const now = await app.show(session.id);
        return now.fetchedAt !== session.fetchedAt;
      });
      seen.push(await open());
      throw new PlatformError('unknown-outcome', 'updateSession', { reason: 'the process ends here' });
    });
    try {
      expect((await update(session.id, { noteTemplateIds: [DAP] })).status).toBe(504);
    } finally {
      call.mockRestore();
    }
    expect(seen).toEqual([
      { wanted: 1, is_due: true },
      { wanted: 1, is_due: true },
    ]);
    const onPlatform = simulated(session.sessionId) ?? fail('The platform has no such session.');
    await until('what was due at once is fetched', async () => (await open())?.wanted === 1);
    onPlatform.noteTemplateIds = [SOAP, DAP];
    // The time in which it may have taken effect is over.
    await app.sql(`UPDATE sessions SET update_until = now(), due_at = now() WHERE id = $1`, [session.id]);
    await until('the change was fetched', async () => (await app.show(session.id)).noteTemplateIds.includes(DAP));
    expect(await open()).toEqual({ wanted: 0, is_due: false });
  });

  it('whose answer can not be stored: 504, never the fault of who asked, and it is stored once it can be', async () => {
    const session = await done();
    const onPlatform = simulated(session.sessionId) ?? fail('The platform has no such session.');
    onPlatform.partnerAppointmentId = 'a\0b';
    const calls = await callsDuring(async () => {
      const { status, body } = await update(session.id, { noteTemplateIds: [DAP] });
      expect([status, body.type]).toEqual([504, 'urn:notebridge:problem:platform-unclear']);
    });
    expect([calls, onPlatform.noteTemplateIds]).toEqual([1, [SOAP, DAP]]);
    await until('the session was fetched in vain', async () => {
      const [row] = await app.sql<{ fault: string }>('SELECT fault FROM sessions WHERE id = $1', [session.id]);
      return row?.fault === 'not-storable';
    });
    expect((await app.show(session.id)).noteTemplateIds).toEqual([SOAP]);
    onPlatform.partnerAppointmentId = session.partnerAppointmentId ?? undefined;
    await app.service.call('POST', '/v1/sessions/refreshes', { body: { since: session.sessionCreatedAt } });
    await until('the change was fetched', async () => (await app.show(session.id)).noteTemplateIds.includes(DAP));
  });

  const away = () => Object.assign(new Error('the database goes away'), { code: '57P01' });

  it('that the platform has made is never answered with the wish to send it again, whatever happens next', async () => {
    const session = await done();
    const refreshes = app.service.app.get(RefreshRepository);
    const storing = jest.spyOn(refreshes, 'storeAnswer').mockRejectedValueOnce(away());
    const lost = await update(session.id, { noteTemplateIds: [DAP] });
    storing.mockRestore();
    expect([lost.status, lost.body.type]).toEqual([504, 'urn:notebridge:problem:platform-unclear']);
    await until('the change was fetched', async () => (await app.show(session.id)).noteTemplateIds.includes(DAP));
    finish(session.sessionId);

    const reads = app.service.app.get(SessionReader);
    const find = reads.find.bind(reads);
    let isStored = false;
    const store = refreshes.storeAnswer.bind(refreshes);
    const keeping = jest.spyOn(refreshes, 'storeAnswer').mockImplementation(async (...answer) => {
      const stored = await store(...answer);
      isStored = true;
      return stored;
    });
    const reading = jest.spyOn(reads, 'find').mockImplementation((id, reader) => {
      return isStored && reader === undefined ? Promise.reject(away()) : find(id, reader);
    });
    const { status, body } = await update(session.id, { externalTreatmentPlan: 'A plan.' });
    for (const spy of [keeping, reading]) spy.mockRestore();
    expect([status, body.id, body.sessionId]).toEqual([200, session.id, session.sessionId]);
  });

  it('without an answer is 504 also where the database goes away with it', async () => {
    const session = await done();
    app.trouble({ operation: 'updateSession', kind: 'commit-then-cut' });
    const wanting = jest.spyOn(app.service.app.get(WantedRefreshes), 'wantOne').mockRejectedValueOnce(away());
    const { status, body } = await update(session.id, { noteTemplateIds: [DAP] });
    wanting.mockRestore();
    expect([status, body.type]).toEqual([504, 'urn:notebridge:problem:platform-unclear']);
  });

  it.each<FaultKind>(['commit-then-cut', 'commit-then-500', 'bad-json', 'commit-late'])(
    'whose answer is lost (%s): 504, not sent again, and the session is fetched',
    async (kind) => {
      const session = await done();
      app.trouble({ operation: 'updateSession', kind });
      const calls = await callsDuring(async () => {
        const { status, body } = await update(session.id, { noteTemplateIds: [DAP] });
        expect([status, body.type]).toEqual([504, 'urn:notebridge:problem:platform-unclear']);
        await until('the change was fetched', async () => (await app.show(session.id)).noteTemplateIds.includes(DAP));
      });
      expect(calls).toBe(1);
    },
  );

  it('of a session that is not known is 404, and of one that the platform does not have yet 409', async () => {
    expect((await update('nowhere', { externalTreatmentPlan: 'x' })).status).toBe(404);
    app.trouble({ kind: 'refuse' });
    const wish = { provider: 'p-1', noteTemplateIds: [SOAP], input: TEXT };
    const unknown = (await app.service.call('POST', '/v1/sessions', { body: wish, wait: 60 })).json<SessionResponse>();
    expect(unknown.state).toBe('Unknown');
    const { body } = await update(unknown.id, { externalTreatmentPlan: 'x' });
    expect(body).toMatchObject({ status: 409, state: 'Unknown' });
  });
});

describe('the deprecated update of note templates', () => {
  const put = async (id: string, body: unknown) => {
    const answer = await app.service.call('PUT', `/v1/sessions/${id}/note-templates`, { body });
    return { status: answer.status, body: answer.json<SessionResponse & Refused>() };
  };

  it('adds templates and answers with the session', async () => {
    const session = await done();
    const { status, body } = await put(session.id, { noteTemplateIds: [DAP] });
    expect([status, body.noteTemplateIds]).toEqual([200, [SOAP, DAP]]);
  });

  it.each<[string, object]>([
    ['missing', {}],
    ['no list', { noteTemplateIds: DAP }],
    ['an empty list', { noteTemplateIds: [] }],
    ['no UUIDs', { noteTemplateIds: ['dap'] }],
  ])('noteTemplateIds: %s is refused', async (_name, body) => {
    expect((await put('any', body)).body).toMatchObject({ status: 400, pointer: '/noteTemplateIds' });
  });

  it('is marked deprecated in OpenAPI', async () => {
    const openapi = (await app.service.call('GET', '/openapi.json')).json<{
      paths: Record<string, Record<string, { deprecated?: boolean }>>;
    }>();
    expect(openapi.paths['/v1/sessions/{id}/note-templates']?.put?.deprecated).toBe(true);
    expect(openapi.paths['/v1/sessions/{id}']?.patch?.deprecated).toBeUndefined();
  });

  it('without its contract entry is 501, while the update works', async () => {
    const bare = await startRequestsApp({}, ['updateSessionTemplates']);
    try {
      const answer = await bare.service.call('PUT', '/v1/sessions/any/note-templates', {
        body: { noteTemplateIds: [DAP] },
      });
      expect([answer.status, answer.json<Refused>().missing?.join()]).toEqual([
        501,
        expect.stringContaining('updateSessionTemplates'),
      ]);
      const patch = await bare.service.call('PATCH', '/v1/sessions/any', { body: { externalTreatmentPlan: 'x' } });
      expect(patch.status).toBe(404);
    } finally {
      await bare.close();
    }
  });
});
