import { takeStep } from '../../../simulator/sessions/session-run.js';
import type { Page } from '../../../src/http/request/page.js';
import type { UploadAddressResponse } from '../../../src/platform/clients/upload-address.dto.js';
import { RequestAttempts } from '../../../src/sessions/create/request-attempts.repository.js';
import type { SessionResponse } from '../../../src/sessions/model/session-view.js';
import { contractFile } from '../../support/contract-file.js';
import { SOAP } from '../../world/mirrored-people.js';
import { useWorld } from '../../world/use-world.js';
import type { Problem } from '../arriving-sessions.js';
import { OPERATION, PLAN, TEXT, useSessionRequests, usual, type Wish } from './session-requests.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const requests = useSessionRequests(world);
const { create, show, sent, webhooks, sessionsOf, sessionOf, shownAs, storedRequest, published } = requests;

describe('creating a session', () => {
  it('answers 201 with Location and the platform’s id, then follows the platform’s state', async () => {
    const wish = { ...usual(), date: '2026-03-01T09:00:00+01:00', externalTreatmentPlan: PLAN };
    const { status, headers, body } = await create(wish);
    const session = sessionOf(wish.partnerAppointmentId);
    expect(status).toBe(201);
    expect(headers.get('location')).toBe(`/v1/sessions/${body.id}`);
    expect(body).toMatchObject({
      sessionId: session.sessionId,
      partnerAppointmentId: wish.partnerAppointmentId,
      provider: 'p-1',
      clients: ['c-1'],
      noteTemplateIds: [SOAP],
      error: null,
    });
    expect(session).toMatchObject({ input: { kind: 'text', text: TEXT }, externalTreatmentPlan: PLAN });
    while (session.nextStep) takeStep(world.platform.simulator.state, session);
    const done = await shownAs(body.id, 'Done');
    expect(done.id).toBe(body.id);
    expect(await show(session.sessionId)).toEqual(await show(body.id));
  });

  it('answers 202 immediately with Prefer: wait=0', async () => {
    const { status, headers, body } = await create(usual(), { wait: 0 });
    expect([status, headers.get('preference-applied')]).toEqual([202, 'wait=0']);
    expect(body.state).toBe('Requested');
    await shownAs(body.id, 'InProgress');
  });

  it('answers 202 with the id once committed, even if the next step fails', async () => {
    const wish = usual();
    world.platform.hold({ operation: OPERATION });
    const before = sent();
    const answering = create(wish);
    await world.untilCalled(OPERATION, before);
    // A waiting caller reads the row repeatedly.
    await world.sql('ALTER TABLE sessions RENAME TO sessions_away');
    const { status, headers, body } = await answering;
    await world.sql('ALTER TABLE sessions_away RENAME TO sessions');
    world.platform.release();
    expect([status, body]).toMatchObject([
      202,
      { state: 'Requested', sessionId: null, provider: 'p-1', clients: ['c-1'], providerUserId: requests.provider },
    ]);
    expect(headers.get('location')).toBe(`/v1/sessions/${body.id}`);
    await world.settle();
    const session = await show(body.id);
    expect(session.sessionId).not.toBeNull();
    expect(Object.keys(session).sort()).toEqual(Object.keys(body).sort());
    expect(sessionsOf(wish.partnerAppointmentId)).toHaveLength(1);
  });

  it('keeps the platform’s answer until the database can store it', async () => {
    webhooks(false);
    const wish = usual();
    const { body } = await create(wish, { wait: 0 });
    const held = await world.untilHeld({ operation: OPERATION });
    const storing = jest.spyOn(world.get(RequestAttempts), 'accepted');
    await world.sql('ALTER TABLE sessions ADD CONSTRAINT none CHECK (session_id IS NULL) NOT VALID');
    const answered = held.answer();
    await world.eventually('the answer is stored once more', () => storing.mock.calls.length > 1);
    await world.sql('ALTER TABLE sessions DROP CONSTRAINT none');
    await answered;
    const { sessionId } = await shownAs(body.id, 'InProgress');
    expect(sessionOf(wish.partnerAppointmentId).sessionId).toBe(sessionId);
  });

  it('makes one session of several requests for an appointment at once', async () => {
    const wish = usual();
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => create(wish, { wait: 0 })));
    const made = answers.filter(({ status }) => status === 202).map(({ body }) => body.id);
    expect(made).toHaveLength(1);
    const refused = answers.filter(({ status }) => status !== 202);
    for (const { body } of refused)
      expect(body).toMatchObject({ type: 'urn:notebridge:problem:session-unsettled', session: made[0] });
    await world.settle();
    expect(sessionOf(wish.partnerAppointmentId).sessionId).toBe((await show(made[0] ?? '')).sessionId);
  });

  it('creates one session per Idempotency-Key and repeats its answer', async () => {
    const wish = usual();
    const [first, second] = [
      await create(wish, { idempotencyKey: 'key-1' }),
      await create(wish, { idempotencyKey: 'key-1' }),
    ];
    expect(second.body).toEqual(first.body);
    expect(second.headers.get('location')).toBe(first.headers.get('location'));
    expect(sessionsOf(wish.partnerAppointmentId)).toHaveLength(1);
    expect((await create({ ...wish, date: '2026-01-01T08:00:00Z' }, { idempotencyKey: 'key-1' })).status).toBe(422);
  });

  it('publishes session.created once, even if the event arrives before the answer', async () => {
    const wish = usual();
    const { body } = await create(wish, { wait: 0 });
    const held = await world.untilHeld({ operation: OPERATION });
    await world.settle();
    const { sessionId } = sessionOf(wish.partnerAppointmentId);
    expect((await world.call('GET', `/v1/sessions/${sessionId}`)).status).toBe(404);
    await held.answer();
    expect((await show(sessionId)).id).toBe(body.id);
    await world.advance('1 s');
    await world.settle();
    expect((await world.call<Page<SessionResponse>>('GET', '/v1/sessions')).body.items).toHaveLength(1);
    expect((await published(body.id)).map(({ type }) => type)).toEqual(['session.created']);
  });

  it('sends recording URLs in order, with their content', async () => {
    const recordingUrls = ['https://files.example.test/b.wav', 'https://files.example.test/a.wav'];
    const recording = { recordingUrls, recordingContent: 'DictatedNotes' };
    const wish = { ...usual(), input: { recording } };
    expect((await create(wish)).status).toBe(201);
    const { input } = sessionOf(wish.partnerAppointmentId);
    expect(input).toEqual({ kind: 'recording', urls: recordingUrls, content: 'DictatedNotes' });
  });

  it('accepts any scheme from the upload route, and rejects foreign URLs', async () => {
    const { state } = world.platform.simulator;
    const before = state.settings;
    state.settings = { ...before, fileUrls: 's3' };
    const target = (
      await world.call<UploadAddressResponse>('POST', '/v1/recordings/upload-url', {
        body: { contentType: 'audio/wav' },
      })
    ).body;
    const stored = await fetch(target.uploadUrl, { method: target.method, headers: target.headers, body: 'sound' });
    state.settings = before;
    expect([stored.status, target.url.slice(0, 5)]).toEqual([200, 's3://']);
    const asked = (url: string) =>
      create({ ...usual(), input: { recording: { recordingUrls: [url], recordingContent: 'Recording' } } });
    expect((await asked(target.url)).status).toBe(201);
    const { status, body } = await asked('s3://elsewhere/a.wav');
    expect([status, body.type]).toEqual([422, 'urn:notebridge:problem:url-not-allowed']);
  });

  it('accepts a session type, and pronouns instead of a client', async () => {
    const { client: _, noteTemplateIds: __, ...rest } = usual();
    const { status, body } = await create({ ...rest, sessionType: 'Soap', clientPronouns: 'NeutralThem' });
    expect([status, body.clients]).toEqual([201, []]);
    expect(sessionOf(rest.partnerAppointmentId)).toMatchObject({ clientPronouns: 'NeutralThem' });
  });

  it('sends a generated appointment id if there is none, and shows none', async () => {
    const { partnerAppointmentId: _, ...rest } = usual();
    const { body } = await create(rest);
    expect(sessionsOf(`notebridge:${body.id}`)).toHaveLength(1);
    await world.settle();
    const fetched = await show(body.id);
    expect(fetched.fetchedAt).not.toBeNull();
    expect([body.partnerAppointmentId, fetched.partnerAppointmentId]).toEqual([null, null]);
    const listed = await world.call<{ items: unknown[] }>('GET', `/v1/sessions?appointment=notebridge:${body.id}`);
    expect(listed.body.items).toEqual([]);
  });

  it('treats null and blank optional fields as absent', async () => {
    const wish = { ...usual(), clientPronouns: null, sessionType: null, date: null, externalTreatmentPlan: ' ' };
    const { status } = await create({ ...wish, input: { ...wish.input, recording: null } });
    expect(status).toBe(201);
    expect(sessionOf(wish.partnerAppointmentId).externalTreatmentPlan).toBeUndefined();
  });

  it('encrypts plan and text while pending and erases them once settled', async () => {
    const { body } = await create({ ...usual(), externalTreatmentPlan: PLAN }, { wait: 0 });
    const held = await world.untilHeld({ operation: OPERATION });
    const waiting = await storedRequest(body.id);
    expect(waiting?.length).toBeGreaterThan(TEXT.length);
    expect(waiting?.toString('latin1')).not.toMatch(/quarry|Sleep|Goals/);
    await held.answer();
    expect(await storedRequest(body.id)).toBeNull();
  });

  it('answers 501 and stores nothing without createSession in the contract', async () => {
    await world.restart({ PLATFORM_CONTRACT: contractFile([OPERATION]) });
    const { status, body } = await world.call<Problem>('POST', '/v1/sessions', { body: usual() });
    expect(status).toBe(501);
    expect(body.missing?.join()).toMatch(/createSession/);
    expect((await world.call<Page<SessionResponse>>('GET', '/v1/sessions')).body.items).toEqual([]);
  });
});

describe('people in a request', () => {
  it.each<[string, Wish, number, string, string]>([
    ['an unknown provider', { provider: 'p-9' }, 422, 'unknown-provider', '/provider'],
    ['an unknown client', { client: 'c-9' }, 422, 'unknown-client', '/client'],
    ['a client that the provider does not treat', { provider: 'p-2' }, 422, 'not-treated', '/client'],
    ['a client that is not mirrored yet', { client: 'c-2' }, 409, 'client-not-mirrored', '/client'],
  ])('%s', async (_name, change, status, type, pointer) => {
    const { body } = await create({ ...usual(), ...change });
    expect(body).toMatchObject({ status, type: `urn:notebridge:problem:${type}`, pointer });
    expect(sent()).toBe(0);
  });
});

describe('rejected before any call', () => {
  const url = 'https://files.example.test/1.wav';
  it.each<[string, object, number, string]>([
    ['an unknown field', { providerUserId: 'x' }, 400, '/providerUserId'],
    ['client together with clientPronouns', { clientPronouns: 'FeminineHer' }, 400, '/clientPronouns'],
    ['noteTemplateIds together with sessionType', { sessionType: 'Soap' }, 400, '/sessionType'],
    ['a Couple type', { noteTemplateIds: null, sessionType: 'CoupleSoap' }, 400, '/sessionType'],
    ['a date without its time of day', { date: '2026-03-01' }, 400, '/date'],
    ['neither form', { noteTemplateIds: undefined }, 400, '/noteTemplateIds'],
    ['no input', { input: {} }, 400, '/input'],
    ['a plan that is too long', { externalTreatmentPlan: 'x'.repeat(100_001) }, 400, '/externalTreatmentPlan'],
    [
      'a recording at a link-local address',
      { input: { recording: { recordingUrls: [url, 'https://169.254.169.254/'], recordingContent: 'Recording' } } },
      422,
      '/input/recording/recordingUrls/1',
    ],
  ])('%s', async (_name, change, status, pointer) => {
    const { body } = await create({ ...usual(), ...change });
    expect([body.status, body.pointer]).toEqual([status, pointer]);
    expect(sent()).toBe(0);
  });
});
