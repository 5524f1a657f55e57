import { until } from '../harness/until.js';
import { buildSimulator, type Simulator } from '../simulator/app.js';
import type { Session } from '../src/platform/contract/session-answer.js';
import { callSimulator, newSimulatedClient, newSimulatedProvider } from './support/simulator-call.js';

const TEMPLATE = '11111111-1111-4111-8111-111111111111';
const OTHER = '22222222-2222-4222-8222-222222222222';
const SESSIONS = '/api/v2/therapy-session';

let simulator: Simulator;
let provider: string;
let client: string;

beforeAll(async () => {
  simulator = await buildSimulator({ seed: 2, settings: { stepMs: 0, processingEvents: false } });
});
beforeEach(async () => {
  simulator.state.reset();
  provider = await newSimulatedProvider(simulator);
  client = await newSimulatedClient(simulator, provider);
});
afterAll(() => simulator.close());

const call = (method: string, path: string, body?: unknown) => callSimulator(simulator, method, path, body);
const text = { text: { text: 'Slept well.' } };
const recording = {
  recording: { recordingUrls: ['https://files.example.test/1.wav'], recordingContent: 'Recording' },
};

function creation(more: object = {}): object {
  return { providerUserId: provider, clientUserId: client, noteTemplateIds: [TEMPLATE], input: text, ...more };
}

async function create(more: object = {}): Promise<string> {
  const answer = await call('POST', SESSIONS, creation(more));
  return answer.json().sessionId ?? '';
}

/** A session whose first run is over. */
async function finished(more: object = {}): Promise<string> {
  const sessionId = await create(more);
  await call('POST', `/_simulator/sessions/${sessionId}/advance`, { toEnd: true });
  return sessionId;
}

const advance = (sessionId: string) => call('POST', `/_simulator/sessions/${sessionId}/advance`, {});
const patch = (sessionId: string, body: unknown) => call('PATCH', `${SESSIONS}/${sessionId}`, body);
const read = async (sessionId: string) => (await call('GET', `${SESSIONS}/${sessionId}`)).json<Session>();
const switches = (sessionId: string, body: object) => call('PATCH', `/_simulator/sessions/${sessionId}`, body);
const events = () =>
  simulator.state.deliveries.list().map(({ body }) => {
    const { eventType, aiNotesEnabled } = JSON.parse(body);
    return [eventType.replace('SESSION_', '').replace('PROCESSING_', ''), aiNotesEnabled];
  });

describe('creating a session', () => {
  it('form B by template ids, form A by session type', async () => {
    expect((await call('POST', SESSIONS, creation())).json()).toEqual({ sessionId: expect.any(String) });
    const byType = await create({ noteTemplateIds: undefined, sessionType: 'Soap' });
    expect((await read(byType)).noteTemplateIds).toHaveLength(1);
  });

  it.each<[string, object]>([
    ['providerUserId is required', { providerUserId: undefined }],
    ['providerUserId is a platform userId, not an external id', { providerUserId: 'p-1' }],
    ['clientUserId is a platform userId', { clientUserId: 'c-1' }],
    ['clientPronouns is one of three', { clientUserId: undefined, clientPronouns: 'Him' }],
    ['clientPronouns and clientUserId exclude each other', { clientPronouns: 'NeutralThem' }],
    ['a session type or templates are required', { noteTemplateIds: undefined }],
    ['a session type and templates exclude each other', { sessionType: 'Soap' }],
    ['sessionType is on the list', { noteTemplateIds: undefined, sessionType: 'Other' }],
    ['couple sessions are not yet supported', { noteTemplateIds: undefined, sessionType: 'CoupleDap' }],
    ['noteTemplateIds is a list', { noteTemplateIds: TEMPLATE }],
    ['noteTemplateIds is not empty', { noteTemplateIds: [] }],
    ['noteTemplateIds holds UUIDs', { noteTemplateIds: ['soap'] }],
    ['input is required', { input: undefined }],
    ['input is not empty', { input: {} }],
    ['recording and text exclude each other', { input: { ...text, ...recording } }],
    ['text is not blank', { input: { text: { text: ' ' } } }],
    ['recordingUrls is required', { input: { recording: { recordingContent: 'Recording' } } }],
    ['recordingUrls holds URLs', { input: { recording: { recordingUrls: ['x'], recordingContent: 'Recording' } } }],
    ['recordingContent is required', { input: { recording: { recordingUrls: ['https://a.test/1'] } } }],
    ['date is ISO 8601', { date: '21.11.2026' }],
    ['partnerAppointmentId is a string', { partnerAppointmentId: 7 }],
    ['the plan has at most 100000 characters', { externalTreatmentPlan: 'x'.repeat(100_001) }],
  ])('400: %s', async (_rule, more) => {
    const answer = await call('POST', SESSIONS, creation(more));
    expect([answer.status, answer.json().message]).toEqual([400, expect.any(String)]);
    expect(simulator.state.sessions.list()).toEqual([]);
  });

  it('400: the provider must have access to the client', async () => {
    const stranger = await newSimulatedProvider(simulator, 'other@example.test');
    expect((await call('POST', SESSIONS, creation({ providerUserId: stranger }))).status).toBe(400);
  });

  it('a plan of exactly 100000 characters is taken', async () => {
    expect(await create({ externalTreatmentPlan: 'x'.repeat(100_000) })).not.toBe('');
  });
});

describe('the run of a session', () => {
  it('with AI notes: created, started, notes once per template, completed; text begins as false', async () => {
    await finished({ noteTemplateIds: [TEMPLATE, OTHER] });
    expect(events()).toEqual([
      ['CREATED', false],
      ['STARTED', true],
      ['NOTES_COMPLETED', true],
      ['NOTES_COMPLETED', true],
      ['COMPLETED', true],
    ]);
  });

  it('without AI notes: only created, then completed with false', async () => {
    await call('PATCH', '/_simulator/settings', { aiNotes: false });
    const sessionId = await finished({ input: recording });
    expect(events()).toEqual([
      ['CREATED', null],
      ['COMPLETED', false],
    ]);
    expect((await read(sessionId)).notes).toBeUndefined();
  });

  it('the provisional value may be the opposite of the final one', async () => {
    await call('PATCH', '/_simulator/settings', { provisionalAiNotes: 'opposite', aiNotes: false });
    await finished();
    expect(events()).toEqual([
      ['CREATED', true],
      ['COMPLETED', false],
    ]);
  });

  it('events carry the appointment id and the provider', async () => {
    await create({ partnerAppointmentId: 'apt-1' });
    expect(JSON.parse(simulator.state.deliveries.list().at(-1)?.body ?? '')).toMatchObject({
      partnerAppointmentId: 'apt-1',
      providerUserId: provider,
    });
  });

  it('InProgress, Processing, Done; the transcript comes with processing, notes before the end', async () => {
    const sessionId = await create({ input: recording });
    expect(await read(sessionId)).toMatchObject({ state: 'InProgress' });
    await advance(sessionId);
    expect(await read(sessionId)).toMatchObject({
      state: 'Processing',
      transcript: { speakerMapping: { A: provider } },
    });
    await advance(sessionId);
    const withNotes = await read(sessionId);
    expect([withNotes.state, withNotes.notes?.length, withNotes.topics]).toEqual(['Processing', 1, undefined]);
    await advance(sessionId);
    const done = await read(sessionId);
    expect(done).toMatchObject({ state: 'Done', recordingDurationMs: expect.any(Number) });
    expect(done.transcript?.utterances?.[0]?.words[0]).toEqual({ text: 'Good', start: 0, end: 340 });
    expect(Object.keys(done.analyticsSummary?.talkingRatio ?? {})).toEqual([provider, client]);
    expect(done.notes?.[0]?.notes.map((note) => note.formatting?.nestingLevel)).toContain(1);
  });

  it('several recordings are concatenated', async () => {
    const one = await read(await finished({ input: recording }));
    const urls = ['https://files.example.test/1.wav', 'https://files.example.test/2.wav'];
    const input = { recording: { ...recording.recording, recordingUrls: urls } };
    const two = await read(await finished({ input }));
    expect(two.transcript?.utterances?.length).toBe(2 * (one.transcript?.utterances?.length ?? 0));
  });

  it('a failing session ends in Error with low-content-transcript and tells it', async () => {
    const sessionId = await create({ input: recording });
    await switches(sessionId, { willFail: true });
    await call('POST', `/_simulator/sessions/${sessionId}/advance`, { toEnd: true });
    expect(await read(sessionId)).toMatchObject({ state: 'Error', error: { code: 'low-content-transcript' } });
    expect(events().at(-1)).toEqual(['FAILED', true]);
  });

  it('the processing events name the processingId, which leads to the session', async () => {
    await call('PATCH', '/_simulator/settings', { processingEvents: true });
    const sessionId = await finished();
    const last = JSON.parse(simulator.state.deliveries.list().at(-1)?.body ?? '');
    expect(last).toEqual({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId: expect.any(String) } });
    const answer = await call('GET', `/api/v1/processing/${last.payload.processingId}`);
    expect(answer.json()).toMatchObject({ processing: { sessionId } });
  });

  it('on the timer a session ends by itself', async () => {
    await call('PATCH', '/_simulator/settings', { stepMs: 5 });
    const sessionId = await create();
    await until('it is done', async () => (await read(sessionId)).state === 'Done');
    expect((await read(sessionId)).notes).toHaveLength(1);
  });
});

describe('updating a session', () => {
  it.each<[string, object]>([
    ['an empty patch', {}],
    [
      'only blank fields',
      { noteTemplateIds: [], externalTreatmentPlan: ' ', speakerMapping: null, input: { text: '' } },
    ],
    ['malformed template UUIDs', { noteTemplateIds: ['soap'] }],
    ['a plan that is too long', { externalTreatmentPlan: 'x'.repeat(100_001) }],
    ['input without text', { input: {} }],
    ['speakerMapping for a text-to-note session', { speakerMapping: { A: TEMPLATE } }],
  ])('400: %s', async (_rule, body) => {
    const sessionId = await finished();
    expect((await patch(sessionId, body)).status).toBe(400);
  });

  it.each<[string, object]>([
    ['input for a recording session', { input: { text: 'More.' } }],
    ['malformed speaker UUIDs', { speakerMapping: { A: 'ada' } }],
  ])('400: %s', async (_rule, body) => {
    const sessionId = await finished({ input: recording });
    expect((await patch(sessionId, body)).status).toBe(400);
  });

  it('404: an unknown session, under both paths', async () => {
    expect((await patch('nobody', { noteTemplateIds: [OTHER] })).status).toBe(404);
    expect((await call('PATCH', '/therapy-session/nobody', { noteTemplateIds: [OTHER] })).status).toBe(404);
  });

  it.each<[string, object, object]>([
    ['a new text', { input: text }, { input: { text: 'Slept badly.' } }],
    ['a new plan', { input: text }, { externalTreatmentPlan: '# Sleep' }],
    ['a new speaker mapping', { input: recording }, { speakerMapping: { B: TEMPLATE } }],
  ])(
    '%s makes all notes anew, and tells it once per template, without a second COMPLETED',
    async (_what, how, body) => {
      const sessionId = await finished({ ...how, noteTemplateIds: [TEMPLATE, OTHER] });
      const before = await read(sessionId);
      const told = events().length;
      expect((await patch(sessionId, body)).json<Session>().state).toBe('Processing');
      await advance(sessionId);
      const after = await read(sessionId);
      expect(after.state).toBe('Done');
      expect(after.notes?.[0]?.sessionDocumentId).toBe(before.notes?.[0]?.sessionDocumentId);
      expect(after.notes?.[0]?.notes).not.toEqual(before.notes?.[0]?.notes);
      expect(events().slice(told)).toEqual([
        ['NOTES_COMPLETED', true],
        ['NOTES_COMPLETED', true],
      ]);
    },
  );

  it('a new template is added beside the others, which keep their notes', async () => {
    const sessionId = await finished();
    const before = await read(sessionId);
    await patch(sessionId, { noteTemplateIds: [OTHER] });
    await advance(sessionId);
    const after = await read(sessionId);
    expect(after.noteTemplateIds).toEqual([TEMPLATE, OTHER]);
    expect(after.notes?.[0]).toEqual(before.notes?.[0]);
    expect(after.notes?.[1]?.noteTemplateId).toBe(OTHER);
  });

  it('the deprecated update of templates does the same', async () => {
    const sessionId = await finished();
    const path = `/api/v1/therapy-session/${sessionId}/note-templates`;
    expect((await call('PUT', path, {})).status).toBe(400);
    expect((await call('PUT', path, { noteTemplateIds: [OTHER] })).json<Session>().noteTemplateIds).toContain(OTHER);
  });

  it('a regenerated document may come with another id', async () => {
    await call('PATCH', '/_simulator/settings', { documentIds: 'fresh' });
    const sessionId = await finished();
    const before = (await read(sessionId)).notes?.[0]?.sessionDocumentId;
    await patch(sessionId, { input: { text: 'Again.' } });
    await advance(sessionId);
    expect((await read(sessionId)).notes?.[0]?.sessionDocumentId).not.toBe(before);
  });

  it.each([['editedByHand'], ['transcriptDeleted']])('400: regeneration when %s', async (name) => {
    const sessionId = await finished();
    await switches(sessionId, { [name]: true });
    expect((await patch(sessionId, { noteTemplateIds: [TEMPLATE] })).status).toBe(400);
  });

  it('400: regeneration while processing, and after an error', async () => {
    const processing = await create();
    await advance(processing);
    expect((await patch(processing, { input: { text: 'More.' } })).status).toBe(400);
    const failed = await create();
    await switches(failed, { willFail: true });
    await call('POST', `/_simulator/sessions/${failed}/advance`, { toEnd: true });
    expect((await patch(failed, { noteTemplateIds: [OTHER] })).status).toBe(400);
  });

  it('without AI notes a plan is stored and nothing is made anew', async () => {
    await call('PATCH', '/_simulator/settings', { aiNotes: false });
    const sessionId = await finished();
    await switches(sessionId, { editedByHand: true });
    expect((await patch(sessionId, { externalTreatmentPlan: '# Sleep' })).json<Session>().state).toBe('Done');
    expect(simulator.state.sessions.find(sessionId)?.externalTreatmentPlan).toBe('# Sleep');
  });

  it('a blank field beside another leaves what it names unchanged', async () => {
    const sessionId = await finished({ externalTreatmentPlan: '# Sleep' });
    await patch(sessionId, { externalTreatmentPlan: '  ', noteTemplateIds: [TEMPLATE] });
    expect(simulator.state.sessions.find(sessionId)?.externalTreatmentPlan).toBe('# Sleep');
  });
});
