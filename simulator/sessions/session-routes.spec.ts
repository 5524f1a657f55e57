import type { Session } from '../../src/platform/contract/session-answer.js';
import { callSimulator, newSimulatedClient, newSimulatedProvider } from '../../test/support/simulator-call.js';
import { buildSimulator, type Simulator } from '../app.js';

const TEMPLATE = '11111111-1111-4111-8111-111111111111';
const OTHER = '22222222-2222-4222-8222-222222222222';
const SESSIONS = '/api/v2/therapy-session';

let simulator: Simulator;
let provider: string;
let client: string;
/** Scheduled work of the simulator, which the tests run. */
let later: (() => void)[] = [];

beforeAll(async () => {
  const after = (_ms: number, work: () => void) => {
    later.push(work);
    return () => undefined;
  };
  simulator = await buildSimulator({ seed: 2, after, settings: { stepMs: 0, processingEvents: false } });
});
beforeEach(async () => {
  simulator.state.reset();
  later = [];
  provider = await newSimulatedProvider(simulator);
  client = await newSimulatedClient(simulator, provider);
});
afterAll(() => simulator.close());

const call = (method: string, path: string, body?: unknown) => callSimulator(simulator, method, path, body);
const text = { text: { text: 'Slept well.' } };
const recording = {
  recording: { recordingUrls: ['https://files.example.test/1.wav'], recordingContent: 'Recording' },
};
const creation = (more: object = {}) => ({
  providerUserId: provider,
  clientUserId: client,
  noteTemplateIds: [TEMPLATE],
  input: text,
  ...more,
});
const create = async (more: object = {}) => (await call('POST', SESSIONS, creation(more))).json().sessionId ?? '';
const advance = (sessionId: string, body: object = {}) =>
  call('POST', `/_simulator/sessions/${sessionId}/advance`, body);
/** A session after its first run. */
async function finished(more: object = {}): Promise<string> {
  const sessionId = await create(more);
  await advance(sessionId, { toEnd: true });
  return sessionId;
}
const set = (settings: object) => call('PATCH', '/_simulator/settings', settings);
const patch = (sessionId: string, body: unknown) => call('PATCH', `${SESSIONS}/${sessionId}`, body);
const read = async (sessionId: string) => (await call('GET', `${SESSIONS}/${sessionId}`)).json<Session>();
const alter = (sessionId: string, body: object) => call('PATCH', `/_simulator/sessions/${sessionId}`, body);
const sentEvents = () => simulator.state.deliveries.list().map(({ body }) => JSON.parse(body));
const events = () =>
  sentEvents().map((event) => `${event.eventType.replace(/SESSION_|PROCESSING_/g, '')} ${event.aiNotesEnabled}`);

describe('creating a session', () => {
  it('accepts template ids or a session type, and a plan of 100,000 characters', async () => {
    const byType = await create({ noteTemplateIds: undefined, sessionType: 'Soap' });
    expect((await read(byType)).noteTemplateIds).toHaveLength(1);
    expect(await create({ externalTreatmentPlan: 'x'.repeat(100_000) })).not.toBe('');
  });

  it('rejects requests that violate the specification with 400 and a message', async () => {
    for (const more of [
      { providerUserId: 'p-1' },
      { providerUserId: await newSimulatedProvider(simulator, 'other@example.test') },
      { clientUserId: 'c-1' },
      { clientPronouns: 'NeutralThem' },
      { noteTemplateIds: undefined },
      { sessionType: 'Soap' },
      { noteTemplateIds: undefined, sessionType: 'CoupleDap' },
      { noteTemplateIds: ['soap'] },
      { input: {} },
      { input: { ...text, ...recording } },
      { input: { text: { text: ' ' } } },
      { input: { recording: { recordingUrls: ['x'], recordingContent: 'Recording' } } },
      { date: '21.11.2026' },
      { externalTreatmentPlan: 'x'.repeat(100_001) },
    ]) {
      const { status, json } = await call('POST', SESSIONS, creation(more));
      expect([Object.keys(more), status, json().message]).toEqual([Object.keys(more), 400, expect.any(String)]);
    }
    expect(simulator.state.sessions.list()).toEqual([]);
  });
});

describe('the run of a session', () => {
  it.each([
    [{}, text, 'CREATED false, STARTED true, NOTES_COMPLETED true, COMPLETED true'],
    [{ aiNotes: false }, recording, 'CREATED null, COMPLETED false'],
    [{ aiNotes: false, provisionalAiNotes: 'opposite' }, text, 'CREATED true, COMPLETED false'],
  ])('sends events of its steps with the settings %j', async (settings, input, expected) => {
    await set(settings);
    const sessionId = await finished({ input, partnerAppointmentId: 'apt-1' });
    expect(events().join(', ')).toBe(expected);
    expect(sentEvents()[0]).toMatchObject({ partnerAppointmentId: 'apt-1', providerUserId: provider });
    expect((await read(sessionId)).notes === undefined).toBe('aiNotes' in settings);
  });

  it('is InProgress, Processing with transcript and then notes, Done', async () => {
    const sessionId = await create({ input: recording });
    expect(await read(sessionId)).toMatchObject({ state: 'InProgress' });
    await advance(sessionId);
    const transcript = { speakerMapping: { A: provider } };
    expect(await read(sessionId)).toMatchObject({ state: 'Processing', transcript });
    await advance(sessionId);
    const withNotes = await read(sessionId);
    expect([withNotes.state, withNotes.notes?.length, withNotes.topics]).toEqual(['Processing', 1, undefined]);
    await advance(sessionId);
    const done = await read(sessionId);
    expect(done).toMatchObject({ state: 'Done', recordingDurationMs: expect.any(Number) });
    expect(done.transcript?.utterances?.[0]?.words[0]).toEqual({ text: 'Good', start: 0, end: 340 });
    expect(Object.keys(done.analyticsSummary?.talkingRatio ?? {})).toEqual([provider, client]);
    expect(done.notes?.[0]?.notes.map((note) => note.formatting?.nestingLevel)).toContain(1);
    const recordingUrls = [1, 2].map((n) => `https://files.example.test/${n}.wav`);
    const two = await read(await finished({ input: { recording: { ...recording.recording, recordingUrls } } }));
    expect(two.transcript?.utterances?.length).toBe(2 * (done.transcript?.utterances?.length ?? 0));
  });

  it('ends in Error if willFail is set', async () => {
    const sessionId = await create({ input: recording });
    await alter(sessionId, { willFail: true });
    await advance(sessionId, { toEnd: true });
    expect(await read(sessionId)).toMatchObject({ state: 'Error', error: { code: 'low-content-transcript' } });
    expect(events().at(-1)).toBe('FAILED true');
    expect((await patch(sessionId, { noteTemplateIds: [OTHER] })).status).toBe(400);
  });

  it('sends a processingId that leads to the session', async () => {
    await set({ processingEvents: true });
    const sessionId = await finished();
    const last = sentEvents().at(-1);
    expect(last).toEqual({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId: expect.any(String) } });
    const answer = await call('GET', `/api/v1/processing/${last.payload.processingId}`);
    expect(answer.json()).toMatchObject({ processing: { sessionId } });
  });

  it('ends after its steps on the timer', async () => {
    await set({ stepMs: 5 });
    const sessionId = await create();
    for (let work = later.shift(); work; work = later.shift()) work();
    expect(await read(sessionId)).toMatchObject({ state: 'Done', notes: [{}] });
  });
});

describe('updating a session', () => {
  it('rejects updates that violate the specification', async () => {
    const [typed, recorded] = [await finished(), await finished({ input: recording })];
    const blank = { noteTemplateIds: [], externalTreatmentPlan: ' ', speakerMapping: null, input: { text: '' } };
    const plan = { externalTreatmentPlan: 'x'.repeat(100_001) };
    for (const body of [
      {},
      blank,
      { noteTemplateIds: ['soap'] },
      plan,
      { input: {} },
      { speakerMapping: { A: OTHER } },
    ])
      expect([Object.keys(body), (await patch(typed, body)).status]).toEqual([Object.keys(body), 400]);
    for (const body of [{ input: { text: 'More.' } }, { speakerMapping: { A: 'ada' } }])
      expect([body, (await patch(recorded, body)).status]).toEqual([body, 400]);
    for (const path of [SESSIONS, '/therapy-session'])
      expect((await call('PATCH', `${path}/nobody`, { noteTemplateIds: [OTHER] })).status).toBe(404);
    const processing = await create();
    await advance(processing);
    expect((await patch(processing, { input: { text: 'More.' } })).status).toBe(400);
    for (const name of ['editedByHand', 'transcriptDeleted']) {
      const sessionId = await finished();
      await alter(sessionId, { [name]: true });
      expect([name, (await patch(sessionId, { noteTemplateIds: [TEMPLATE] })).status]).toEqual([name, 400]);
    }
  });

  it.each([
    [text, { input: { text: 'Slept badly.' } }],
    [text, { externalTreatmentPlan: '# Sleep' }],
    [recording, { speakerMapping: { B: TEMPLATE } }],
  ])('regenerates all notes of %j after %j, with one event per template', async (input, body) => {
    const sessionId = await finished({ input, noteTemplateIds: [TEMPLATE, OTHER] });
    const [before, count] = [await read(sessionId), sentEvents().length];
    expect((await patch(sessionId, body)).json<Session>().state).toBe('Processing');
    await advance(sessionId);
    const after = await read(sessionId);
    expect([after.state, after.notes?.[0]?.sessionDocumentId]).toEqual(['Done', before.notes?.[0]?.sessionDocumentId]);
    expect(after.notes?.[0]?.notes).not.toEqual(before.notes?.[0]?.notes);
    expect(events().slice(count)).toEqual(Array(2).fill('NOTES_COMPLETED true'));
  });

  it('adds a template; the others keep their notes', async () => {
    const sessionId = await finished({ externalTreatmentPlan: '# Sleep' });
    const before = await read(sessionId);
    await patch(sessionId, { externalTreatmentPlan: '  ', noteTemplateIds: [OTHER] });
    await advance(sessionId);
    const after = await read(sessionId);
    expect(after.notes?.map(({ noteTemplateId }) => noteTemplateId)).toEqual([TEMPLATE, OTHER]);
    expect(after.notes?.[0]).toEqual(before.notes?.[0]);
    expect(simulator.state.sessions.find(sessionId)?.externalTreatmentPlan).toBe('# Sleep'); // a blank field changes nothing
    const path = `/api/v1/therapy-session/${await finished()}/note-templates`;
    expect((await call('PUT', path, {})).status).toBe(400);
    expect((await call('PUT', path, { noteTemplateIds: [OTHER] })).json<Session>().noteTemplateIds).toContain(OTHER);
  });
});
