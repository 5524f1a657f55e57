import type { Platform } from '../../harness/world/platform.js';
import type { CallOptions } from '../../harness/world/request.js';
import type { FaultKind } from '../../simulator/gate/fault-rule.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { PlatformClient } from '../../src/platform/clients/platform-client.js';
import type { UploadAddressResponse } from '../../src/platform/clients/upload-address.dto.js';
import { PlatformError } from '../../src/platform/contract/platform-errors.js';
import { OutcomeWriter } from '../../src/platform/send/outcome-writer.js';
import { RequestSender } from '../../src/sessions/create/request-sender.js';
import { SessionRequestsRepository } from '../../src/sessions/create/session-requests.repository.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { contractFile } from '../support/contract-file.js';
import { mirroredPeople, SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import type { Problem } from './arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
let provider: string;

beforeEach(async () => {
  ({ provider } = await mirroredPeople(world));
});

const OPERATION = 'createSession';
const sent = () => world.platform.arrivals(OPERATION);
const injectFault = (rule: Parameters<Platform['injectFault']>[0]) =>
  world.platform.injectFault({ operation: OPERATION, ...rule });
const hasLeft = (before: number) => world.untilCalled(OPERATION, before);
const sessionsOf = (appointment: string) =>
  world.platform.simulator.state.sessions
    .list()
    .filter(({ partnerAppointmentId }) => partnerAppointmentId === appointment);
/** Turns the platform's webhooks on or off. */
const webhooks = (on: boolean) => world.platform.set({ webhookDropRate: on ? 0 : 1 });
const show = async (id: string) => (await world.call<SessionResponse>('GET', `/v1/sessions/${id}`)).body;

let appointments = 0;
const newAppointment = () => `appointment-${++appointments}`;
const TEXT = 'The client mentioned the quarry and of sleeping badly.';
const PLAN = '# Goals\n\nSleep through the night.';

const usual = () => ({
  provider: 'p-1',
  client: 'c-1',
  noteTemplateIds: [SOAP],
  input: { text: { text: TEXT } },
  partnerAppointmentId: newAppointment(),
});
type Wish = Partial<Record<keyof ReturnType<typeof usual>, unknown>> & Record<string, unknown>;

const create = (wish: Wish, options: CallOptions = {}) =>
  world.call<SessionResponse & Problem>('POST', '/v1/sessions', { body: wish, wait: 60, ...options });

const createDuplicate = (wish: Wish, options: CallOptions = {}) =>
  world.call<SessionResponse & Problem>('POST', '/v1/sessions?allowDuplicate=true', {
    body: wish,
    wait: 60,
    ...options,
  });

const resolve = (id: string, body: object) =>
  world.call<SessionResponse & Problem>('POST', `/v1/sessions/${id}/resolve`, { body, wait: 60 });

async function shownAs(id: string, state: string): Promise<SessionResponse> {
  await world.settle();
  const session = await show(id);
  expect(session.state).toBe(state);
  return session;
}

const requestOf = async (id: string) =>
  (
    await world.sql<{ state: string; fault: string | null; request: Buffer | null }>(
      'SELECT * FROM sessions WHERE shown_id = $1',
      [id],
    )
  )[0];

/** A request whose answer was lost, before any event of its session. */
async function lost(
  wish: Wish = usual(),
  kind: FaultKind = 'commit-then-cut',
  send: typeof create = create,
): Promise<SessionResponse> {
  webhooks(false);
  injectFault({ kind });
  const { body, status } = await send(wish);
  webhooks(true);
  expect([status, body.state, body.sessionId]).toEqual([202, 'Unknown', null]);
  return body;
}

/** Sends a platform event about a session. */
function sendEvent(sessionId: string, partnerAppointmentId: unknown, more: object = {}): void {
  const eventType = 'SESSION_CREATED';
  const event = { eventType, sessionId, providerUserId: provider, partnerAppointmentId, aiNotesEnabled: null };
  world.platform.simulator.state.deliveries.send({ ...event, ...more } as never);
}

async function handled(sessionId: string): Promise<SessionResponse> {
  await world.settle();
  const { status, body } = await world.call<SessionResponse>('GET', `/v1/sessions/${sessionId}`);
  expect(status).toBe(200);
  return body;
}

describe('creating a session', () => {
  it('keeps the platform’s answer until the database can store it', async () => {
    webhooks(false);
    world.platform.hold({ operation: OPERATION });
    const before = sent();
    const wish = usual();
    const { body } = await create(wish, { wait: 0 });
    const working = world.settle();
    await hasLeft(before);
    const outcomeWriter = world.get(OutcomeWriter);
    const writeUntilStored = outcomeWriter.writeUntilStored.bind(outcomeWriter);
    const storing = jest.fn();
    const retried = new Promise<void>((resolve) => {
      jest.spyOn(outcomeWriter, 'writeUntilStored').mockImplementationOnce((ids, write) =>
        writeUntilStored(ids, () => {
          storing();
          if (storing.mock.calls.length > 1) resolve();
          return write();
        }),
      );
    });
    await world.sql('ALTER TABLE sessions ADD CONSTRAINT none CHECK (session_id IS NULL) NOT VALID');
    world.platform.release();
    await retried;
    await world.sql('ALTER TABLE sessions DROP CONSTRAINT none');
    await working;
    const session = await shownAs(body.id, 'InProgress');
    webhooks(true);
    const [made, ...more] = sessionsOf(wish.partnerAppointmentId);
    expect([made?.sessionId, more]).toEqual([session.sessionId, []]);
  });

  it('answers 409 to a request that meets another one, stored after it looked for one', async () => {
    const wish = usual();
    const first = await lost(wish);
    const requests = world.get(SessionRequestsRepository) as unknown as { blocking(): Promise<undefined> };
    const looking = jest.spyOn(requests, 'blocking').mockResolvedValueOnce(undefined);
    const { status, body } = await create(wish);
    expect([status, body.type, body.session]).toEqual([409, 'urn:notebridge:problem:session-unsettled', first.id]);
    expect(looking).toHaveBeenCalledTimes(2);
  });

  it('answers 202 with the id once committed, even if the next step fails', async () => {
    const wish = usual();
    world.platform.hold({ operation: OPERATION });
    const before = sent();
    const answering = create(wish);
    await hasLeft(before);
    // A waiting caller reads the row repeatedly.
    await world.sql('ALTER TABLE sessions RENAME TO sessions_away');
    const { status, headers, body } = await answering;
    await world.sql('ALTER TABLE sessions_away RENAME TO sessions');
    world.platform.release();
    expect([status, body]).toMatchObject([
      202,
      { state: 'Requested', sessionId: null, provider: 'p-1', clients: ['c-1'], providerUserId: provider },
    ]);
    expect(headers.get('location')).toBe(`/v1/sessions/${body.id}`);
    await world.settle();
    const session = await show(body.id);
    expect(session.sessionId).not.toBeNull();
    expect(Object.keys(session).sort()).toEqual(Object.keys(body).sort());
    expect(sessionsOf(wish.partnerAppointmentId)).toHaveLength(1);
  });

  it('answers 201 with Location and the platform’s id, then follows the platform’s state', async () => {
    const wish = { ...usual(), date: '2026-03-01T09:00:00+01:00', externalTreatmentPlan: PLAN };
    const { status, headers, body } = await create(wish);
    const [session] = sessionsOf(wish.partnerAppointmentId);
    expect(status).toBe(201);
    expect(headers.get('location')).toBe(`/v1/sessions/${body.id}`);
    expect(body).toMatchObject({
      sessionId: session?.sessionId,
      partnerAppointmentId: wish.partnerAppointmentId,
      provider: 'p-1',
      clients: ['c-1'],
      noteTemplateIds: [SOAP],
      error: null,
    });
    expect(session).toMatchObject({ input: { kind: 'text', text: TEXT }, externalTreatmentPlan: PLAN });
    while (session?.nextStep) takeStep(world.platform.simulator.state, session);
    const done = await shownAs(body.id, 'Done');
    expect(done.id).toBe(body.id);
    expect(await show(session?.sessionId ?? '')).toEqual(await show(body.id));
  });

  it('sends recording URLs in order, with their content', async () => {
    const recordingUrls = ['https://files.example.test/b.wav', 'https://files.example.test/a.wav'];
    const recording = { recordingUrls, recordingContent: 'DictatedNotes' };
    const wish = { ...usual(), input: { recording } };
    expect((await create(wish)).status).toBe(201);
    const [session] = sessionsOf(wish.partnerAppointmentId);
    expect(session?.input).toEqual({ kind: 'recording', urls: recordingUrls, content: 'DictatedNotes' });
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
    const sent = await fetch(target.uploadUrl, { method: target.method, headers: target.headers, body: 'sound' });
    state.settings = before;
    expect([sent.status, target.url.slice(0, 5)]).toEqual([200, 's3://']);
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
    expect(sessionsOf(rest.partnerAppointmentId)).toMatchObject([{ clientPronouns: 'NeutralThem' }]);
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
    expect(sessionsOf(wish.partnerAppointmentId)[0]?.externalTreatmentPlan).toBeUndefined();
  });

  it('publishes session.created once, even if the event arrives before the answer', async () => {
    const wish = usual();
    world.platform.hold({ operation: OPERATION });
    const before = sent();
    const asked = create(wish);
    await hasLeft(before);
    await world.settle();
    const waiting = `SELECT 1 FROM webhook_deliveries WHERE state = 'received' AND reason = 'waiting' AND attempts = 0`;
    expect(await world.sql(waiting)).toHaveLength(1);
    world.platform.release();
    const { status, body } = await asked;
    expect(status).toBe(201);
    const rows = await world.sql<{ id: string }>('SELECT id FROM sessions WHERE session_id = $1', [body.sessionId]);
    expect(rows).toEqual([{ id: body.id }]);
    await world.advance('1 s');
    await world.settle();
    const feed = await world.call<{ items: { type: string; subject: string; data: { sessionId: string } }[] }>(
      'GET',
      '/v1/events?limit=200',
    );
    const news = feed.body.items.filter(({ data }) => data.sessionId === body.sessionId);
    expect(news.map(({ type, subject }) => [type, subject])).toEqual([['session.created', `sessions/${body.id}`]]);
  });

  it('answers 202 immediately with Prefer: wait=0', async () => {
    const { status, headers, body } = await create(usual(), { wait: 0 });
    expect([status, headers.get('preference-applied')]).toEqual([202, 'wait=0']);
    expect(body.state).toBe('Requested');
    await shownAs(body.id, 'InProgress');
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

  it('encrypts plan and text while pending and erases them once settled', async () => {
    world.platform.hold({ operation: OPERATION });
    const before = sent();
    const asked = create({ ...usual(), externalTreatmentPlan: PLAN });
    await hasLeft(before);
    const [waiting] = await world.sql<{ request: Buffer }>(`SELECT request FROM sessions WHERE state = 'Requested'`);
    expect(waiting?.request.length).toBeGreaterThan(TEXT.length);
    expect(waiting?.request.toString('latin1')).not.toMatch(/quarry|Sleep|Goals/);
    world.platform.release();
    const { body } = await asked;
    expect(await requestOf(body.id)).toMatchObject({ settled_at: expect.any(Date), request: null });
  });
});

describe('people in a request', () => {
  it.each<[string, Wish, number, string, string]>([
    ['an unknown provider', { provider: 'p-9' }, 422, 'unknown-provider', '/provider'],
    ['an unknown client', { client: 'c-9' }, 422, 'unknown-client', '/client'],
    ['a client that the provider does not treat', { provider: 'p-2' }, 422, 'not-treated', '/client'],
    ['a client that is not mirrored yet', { client: 'c-2' }, 409, 'client-not-mirrored', '/client'],
  ])('%s', async (_name, change, status, type, pointer) => {
    const before = sent();
    const { body } = await create({ ...usual(), ...change });
    expect(body).toMatchObject({ status, type: `urn:notebridge:problem:${type}`, pointer });
    expect(sent()).toBe(before);
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
    const before = sent();
    const { body } = await create({ ...usual(), ...change });
    expect([body.status, body.pointer]).toEqual([status, pointer]);
    expect(sent()).toBe(before);
  });
});

describe('a rejection by the platform', () => {
  it('answers 400 with its message, erases plan and text, and sends nothing again', async () => {
    const before = sent();
    const { status, body } = await create({ ...usual(), noteTemplateIds: ['no-such-template'] });
    expect([status, body.type]).toEqual([400, 'urn:notebridge:problem:platform-rejected']);
    expect(body.platformMessage).toMatch(/noteTemplateIds/);
    const session = await show(body.session ?? '');
    expect([session.state, session.error?.code]).toEqual(['Rejected', 'platform-rejected']);
    expect(await requestOf(session.id)).toMatchObject({ state: 'Rejected', request: null });
    expect(sent()).toBe(before + 1);
  });

  it.each<[string, Parameters<Platform['injectFault']>[0]]>([
    ['429', { kind: 'rate-limit', retryAfterSeconds: 1 }],
    ['403', { kind: 'forbid' }],
  ])('%s: retries automatically and creates one session', async (_name, rule) => {
    const wish = usual();
    injectFault(rule);
    const { body } = await create(wish, { wait: 0 });
    await world.settle();
    await world.advance('2 s');
    await shownAs(body.id, 'InProgress');
    expect(sessionsOf(wish.partnerAppointmentId)).toHaveLength(1);
  });

  it('answers 409 to a second request for an appointment, unless duplicates are allowed', async () => {
    const wish = usual();
    const first = await create(wish);
    const second = await create(wish);
    expect(second.body).toMatchObject({ status: 409, session: first.body.id, state: first.body.state });
    expect(second.body.type).toBe('urn:notebridge:problem:session-exists');
    expect((await create({ ...usual(), partnerAppointmentId: null })).status).toBe(201);
    const duplicate = await createDuplicate(wish);
    expect([duplicate.status, duplicate.body.id === first.body.id]).toEqual([201, false]);
  });

  it('answers 409 to a second request for the appointment while one is Requested', async () => {
    const wish = usual();
    injectFault({ kind: 'rate-limit', retryAfterSeconds: 3_600 });
    const first = await create(wish, { wait: 0 });
    expect([first.status, first.body.state]).toEqual([202, 'Requested']);
    await world.settle();
    expect((await requestOf(first.body.id))?.fault).toBe('rate-limited');
    const second = await createDuplicate(wish);
    expect(second.body).toMatchObject({ status: 409, session: first.body.id, state: 'Requested' });
    const abandoned = await resolve(first.body.id, { action: 'abandon' });
    expect(abandoned.body).toMatchObject({ state: 'Rejected', error: { code: 'abandoned' } });
    await world.advance('1 h');
    expect((await create(wish)).status).toBe(201);
  });
});

describe('an answer that may be the fault of the URL or the API key', () => {
  it.each([
    ['a redirect', { kind: 'status', status: 302 }, 'platform-address'],
    ['404', { kind: 'status', status: 404 }, 'platform-address'],
    ['405', { kind: 'status', status: 405 }, 'platform-address'],
    ['401', { kind: 'status', status: 401 }, 'platform-unauthorized'],
    ['403', { kind: 'forbid' }, 'platform-unauthorized'],
  ] as const)('%s keeps the request, which is sent again', async (_name, fault, code) => {
    injectFault(fault);
    const { body } = await create(usual(), { wait: 0 });
    await shownAs(body.id, 'Requested');
    expect(await requestOf(body.id)).toMatchObject({ fault: code, request: expect.any(Buffer) });
    const { checks } = (await world.call<HealthReport>('GET', '/health/ready')).body;
    expect([checks['session-requests']?.status, checks.sessions?.status]).toEqual(['degraded', 'ok']);
    await world.advance('10 s');
    await shownAs(body.id, 'InProgress');
  });

  it('pauses all requests, and sends one as a probe', async () => {
    injectFault({ kind: 'status', status: 404, count: null });
    for (let n = 0; n < 5; n += 1) await create(usual(), { wait: 0 });
    await world.settle();
    const before = sent();
    await world.advance('10 s');
    await world.settle();
    expect([before <= 5, sent() - before]).toEqual([true, 1]);
  });

  it('rejects the request if the platform accepted another one in between', async () => {
    const client = world.get(PlatformClient);
    const call = client.createSession.bind(client);
    const refused = usual();
    jest.spyOn(client, 'createSession').mockImplementation(async (body) => {
      if (body.partnerAppointmentId !== refused.partnerAppointmentId) return call(body);
      throw new PlatformError('not-found', 'createSession', { status: 404, platformMessage: 'No such template.' });
    });
    const { body } = await create(refused, { wait: 0 });
    await shownAs(body.id, 'Requested');
    await world.advance('10 s');
    await shownAs(body.id, 'Requested');
    const other = await create(usual(), { wait: 0 });
    await world.advance('1 min');
    await shownAs(other.body.id, 'InProgress');
    await world.advance('5 min');
    const { error } = await shownAs(body.id, 'Rejected');
    expect(error).toEqual({ code: 'platform-rejected', message: 'No such template.' });
  });
});

describe('a lost answer', () => {
  it.each<[FaultKind, object]>([
    ['commit-then-cut', {}],
    ['commit-then-500', {}],
    ['bad-json', {}],
    ['commit-late', { ms: 400 }],
  ])('(%s) leaves one session, which the event settles', async (kind, more) => {
    const wish = usual();
    injectFault({ kind, ...more });
    const { body } = await create(wish);
    const settled = await shownAs(body.id, 'InProgress');
    const sessions = sessionsOf(wish.partnerAppointmentId);
    expect(sessions.map(({ sessionId }) => sessionId)).toEqual([settled.sessionId]);
    expect(await requestOf(body.id)).toMatchObject({ settled_at: expect.any(Date), request: null });
  });

  it('becomes Unknown after a refused connection, and sends nothing a second time', async () => {
    const wish = usual();
    const before = sent();
    await lost(wish, 'refuse');
    expect(sent()).toBe(before + 1);
    const again = await create(wish);
    expect(again.body).toMatchObject({ status: 409, type: 'urn:notebridge:problem:session-unsettled' });
    expect(sent()).toBe(before + 1);
  });

  describe('at a process that lost its lease', () => {
    let releaseAnswer: () => void;
    let sending: Promise<void>;
    let id: string;

    beforeEach(async () => {
      webhooks(false);
      ({ id } = (await create(usual(), { wait: 0 })).body);
      const { app, work } = await world.startAnother();
      const platform = app.get(PlatformClient);
      const send = platform.createSession.bind(platform);
      const held = new Promise<void>((resolve) => {
        releaseAnswer = resolve;
      });
      jest.spyOn(platform, 'createSession').mockImplementation(async (request) => {
        const answer = await send(request);
        await held;
        return answer;
      });
      sending = work.requests();
      await hasLeft(0);
      await world.advance('5 min'); // without a heartbeat of the other process
      const sender = world.get(RequestSender);
      await Promise.all([sender.settleLost(), sender.settleLost()]);
      await shownAs(id, 'Unknown');
    });

    afterEach(() => webhooks(true));

    it('settles the request although it is Unknown', async () => {
      releaseAnswer();
      await sending;
      await shownAs(id, 'InProgress');
      expect(sent()).toBe(1);
    });

    it('changes nothing after another attempt started', async () => {
      const { body } = await resolve(id, { action: 'create' });
      releaseAnswer();
      await sending;
      expect((await shownAs(id, 'InProgress')).sessionId).toBe(body.sessionId);
      expect(sent()).toBe(2);
    });
  });

  it('is published as needing review, with its state', async () => {
    const { id } = await lost();
    const { items } = (await world.call<Page<FeedEventResponse>>('GET', '/v1/events?limit=200')).body;
    const published = items.filter(({ subject }) => subject === `sessions/${id}`);
    expect(published.map(({ type, data }) => [type, data.state, data.provider, data.clients])).toEqual([
      ['session.needs-review', 'Unknown', 'p-1', ['c-1']],
    ]);
  });

  it('shows in the session what to look for on the platform, and the ways to resolve it', async () => {
    const wish = { ...usual(), externalTreatmentPlan: PLAN };
    const { id } = await lost(wish);
    const unknown = await show(id);
    const choices = [{ action: 'link' }, { action: 'create' }, { action: 'abandon' }];
    expect(unknown).toMatchObject({ state: 'Unknown', correlationId: wish.partnerAppointmentId, choices });
    const list = await world.call<{ items: object[] }>('GET', '/v1/sessions?state=Unknown');
    expect(list.body.items).toEqual([unknown]);
    await resolve(id, { action: 'abandon' });
    expect(await show(id)).toMatchObject({ state: 'Rejected', correlationId: null, choices: [] });
  });

  it('is settled by the generated appointment id if the EHR sent none', async () => {
    const { partnerAppointmentId: _, ...wish } = usual();
    injectFault({ kind: 'commit-then-cut' });
    const { body } = await create(wish);
    const settled = await shownAs(body.id, 'InProgress');
    expect(settled.partnerAppointmentId).toBeNull();
  });

  it('keeps the id of the row that an event created before the merge', async () => {
    const wish = usual();
    const unknown = await lost(wish);
    const [session] = sessionsOf(wish.partnerAppointmentId);
    sendEvent(session?.sessionId ?? '', undefined); // Without an appointment it matches no request.
    const heard = await handled(session?.sessionId ?? '');
    expect(heard.id).not.toBe(unknown.id);
    const { status, body } = await resolve(unknown.id, { action: 'link', sessionId: session?.sessionId });
    expect([status, body.id, body.sessionId]).toEqual([200, unknown.id, session?.sessionId]);
    expect((await show(heard.id)).id).toBe(unknown.id);
  });

  it.each<[string, (appointment: string) => [unknown, object]]>([
    ['of another appointment', () => ['another', {}]],
    ['of another provider', (appointment) => [appointment, { providerUserId: 'other-provider' }]],
  ])('an event %s does not settle it', async (_name, namesOf) => {
    const wish = usual();
    const unknown = await lost(wish, 'refuse');
    const sessionId = `event-${wish.partnerAppointmentId}`;
    sendEvent(sessionId, ...namesOf(wish.partnerAppointmentId));
    await handled(sessionId);
    expect((await show(unknown.id)).state).toBe('Unknown');
  });

  it('is not settled by a session first seen before the request', async () => {
    const wish = usual();
    const sessionId = `old-${wish.partnerAppointmentId}`;
    sendEvent(sessionId, wish.partnerAppointmentId);
    await handled(sessionId);
    const unknown = await lost(wish, 'refuse', createDuplicate);
    sendEvent(sessionId, wish.partnerAppointmentId, { eventType: 'SESSION_PROCESSING_STARTED' });
    await shownAs(sessionId, 'Processing');
    expect((await show(unknown.id)).state).toBe('Unknown');
  });

  it('is not settled by another request’s session', async () => {
    const wish = usual();
    const first = await create(wish);
    const second = await lost(wish, 'refuse', createDuplicate);
    const [session] = sessionsOf(wish.partnerAppointmentId);
    if (session) takeStep(world.platform.simulator.state, session);
    await shownAs(first.body.id, 'Processing');
    expect((await show(second.id)).state).toBe('Unknown');
    expect((await resolve(second.id, { action: 'link', sessionId: session?.sessionId })).body).toMatchObject({
      status: 409,
      type: 'urn:notebridge:problem:session-taken',
    });
  });
});

it('stays Unknown if its answer names another request’s session, despite a third one’s event', async () => {
  const wish = usual();
  webhooks(false);
  const first = await create(wish);
  webhooks(true);
  const second = await createDuplicate(wish, { wait: 0 });
  sendEvent(`third-${wish.partnerAppointmentId}`, wish.partnerAppointmentId);
  await world.platform.webhooksSent();
  await world.work.inbox();
  const answer = { sessionId: first.body.sessionId ?? '' };
  jest.spyOn(world.get(PlatformClient), 'createSession').mockResolvedValueOnce(answer);
  await shownAs(second.body.id, 'Unknown');
});

describe('an event and a 4xx contradict each other', () => {
  /** The platform executes the next request, but a proxy answers 413. */
  function refusedAfterCommit() {
    const client = world.get(PlatformClient);
    const call = client.createSession.bind(client);
    return jest.spyOn(client, 'createSession').mockImplementationOnce(async (body) => {
      await call(body);
      throw new PlatformError('rejected', 'createSession', { status: 413 });
    });
  }

  it('trusts a later event over a 4xx: Rejected becomes the session', async () => {
    const wish = usual();
    webhooks(false);
    const refused = refusedAfterCommit();
    const { status, body } = await create(wish);
    refused.mockRestore();
    webhooks(true);
    expect([status, body.type]).toEqual([400, 'urn:notebridge:problem:platform-rejected']);
    const [session] = sessionsOf(wish.partnerAppointmentId);
    if (session) takeStep(world.platform.simulator.state, session);
    const settled = await shownAs(body.session ?? '', 'Processing');
    expect(settled).toMatchObject({ sessionId: session?.sessionId, error: null });
  });

  it('settles nothing if two requests for the appointment could be meant', async () => {
    const wish = usual();
    const first = await create({ ...wish, noteTemplateIds: ['no-such-template'] });
    const second = await create({ ...wish, noteTemplateIds: ['no-such-template'] });
    const sessionId = `late-${wish.partnerAppointmentId}`;
    sendEvent(sessionId, wish.partnerAppointmentId);
    const heard = await handled(sessionId);
    const ids = [first.body.session, second.body.session];
    expect(ids).not.toContain(heard.id);
    for (const id of ids) expect((await show(id ?? '')).state).toBe('Rejected');
  });

  it('does not settle a request by a late event of an abandoned one', async () => {
    const wish = usual();
    const former = await lost(wish);
    await resolve(former.id, { action: 'abandon' });
    const successor = await lost(wish, 'refuse');
    const [session] = sessionsOf(wish.partnerAppointmentId);
    sendEvent(session?.sessionId ?? '', wish.partnerAppointmentId);
    const heard = await handled(session?.sessionId ?? '');
    expect([former.id, successor.id]).not.toContain(heard.id);
    expect((await show(successor.id)).state).toBe('Unknown');
    const { body } = await resolve(successor.id, { action: 'link', sessionId: session?.sessionId });
    expect([body.id, body.sessionId]).toEqual([successor.id, session?.sessionId]);
  });

  it('does not settle a request by a late event of one abandoned before its second attempt', async () => {
    const wish = usual();
    const former = await lost(wish);
    injectFault({ kind: 'forbid' });
    await world.call('POST', `/v1/sessions/${former.id}/resolve`, { body: { action: 'create' }, wait: 0 });
    await shownAs(former.id, 'Requested');
    expect((await resolve(former.id, { action: 'abandon' })).body.state).toBe('Rejected');
    await world.advance('5 min'); // The operation is no longer paused.
    const successor = await lost(wish, 'refuse');
    const [session] = sessionsOf(wish.partnerAppointmentId);
    sendEvent(session?.sessionId ?? '', wish.partnerAppointmentId);
    await handled(session?.sessionId ?? '');
    expect((await show(successor.id)).state).toBe('Unknown');
  });

  it('does not settle a resent request by a late event of its first attempt', async () => {
    const wish = usual();
    const unknown = await lost(wish);
    injectFault({ kind: 'refuse' });
    expect((await resolve(unknown.id, { action: 'create' })).body.state).toBe('Unknown');
    const [session] = sessionsOf(wish.partnerAppointmentId);
    sendEvent(session?.sessionId ?? '', wish.partnerAppointmentId);
    expect((await handled(session?.sessionId ?? '')).id).not.toBe(unknown.id);
    expect((await show(unknown.id)).state).toBe('Unknown');
  });
});

describe('resolve', () => {
  it('create: sends the request once more', async () => {
    const wish = usual();
    const unknown = await lost(wish, 'refuse');
    const { status, body } = await resolve(unknown.id, { action: 'create' });
    expect([status, body.id, body.state]).toEqual([200, unknown.id, 'InProgress']);
    expect(sessionsOf(wish.partnerAppointmentId)).toHaveLength(1);
  });

  it('create: answers with the id once committed, even if the next step fails', async () => {
    const wish = usual();
    const unknown = await lost(wish, 'refuse');
    world.platform.hold({ operation: OPERATION });
    const before = sent();
    const answering = resolve(unknown.id, { action: 'create' });
    await hasLeft(before);
    await world.sql('ALTER TABLE sessions RENAME TO sessions_away');
    const { status, body } = await answering;
    await world.sql('ALTER TABLE sessions_away RENAME TO sessions');
    world.platform.release();
    expect([status, body]).toMatchObject([200, { id: unknown.id, state: 'Requested', sessionId: null }]);
    await shownAs(unknown.id, 'InProgress');
    expect(sessionsOf(wish.partnerAppointmentId)).toHaveLength(1);
  });

  it('abandon: rejects the request, erases plan and text, and frees the appointment', async () => {
    const wish = usual();
    const unknown = await lost(wish, 'refuse');
    const { body } = await resolve(unknown.id, { action: 'abandon' });
    expect(body).toMatchObject({ id: unknown.id, state: 'Rejected', error: { code: 'abandoned' } });
    expect(await requestOf(unknown.id)).toMatchObject({ state: 'Rejected', abandoned: true, request: null });
    expect((await create(wish)).status).toBe(201);
  });

  it('link: accepts only a session of the same provider that the platform knows', async () => {
    const unknown = await lost(usual(), 'refuse');
    const { state } = world.platform.simulator;
    const [other] = state.users.list().filter(({ email }) => email === 'bo@example.test');
    const foreign = createSession(state, {
      providerUserId: other?.userId ?? '',
      clientUserIds: [],
      noteTemplateIds: [SOAP],
      input: { kind: 'text', text: 'x' },
      date: '2026-03-01T09:00:00.000Z',
    });
    const outcomes = [
      await resolve(unknown.id, { action: 'link' }),
      await resolve(unknown.id, { action: 'link', sessionId: 'nowhere' }),
      await resolve(unknown.id, { action: 'link', sessionId: foreign.sessionId }),
    ];
    expect(outcomes.map(({ body }) => [body.status, body.pointer])).toEqual([
      [400, '/sessionId'],
      [422, '/sessionId'],
      [422, '/sessionId'],
    ]);
  });

  it('link: answers 409 with the state if an event settles the request during the check', async () => {
    const wish = usual();
    const unknown = await lost(wish);
    const [session] = sessionsOf(wish.partnerAppointmentId);
    const sessionId = session?.sessionId ?? '';
    sendEvent(sessionId, undefined);
    await handled(sessionId);
    const client = world.get(PlatformClient);
    const call = client.getSession.bind(client);
    jest.spyOn(client, 'getSession').mockImplementationOnce(async (id, options) => {
      sendEvent(sessionId, wish.partnerAppointmentId);
      await world.platform.webhooksSent();
      await world.work.inbox();
      return call(id, options);
    });
    const { body } = await resolve(unknown.id, { action: 'link', sessionId });
    expect(body).toMatchObject({ status: 409, state: expect.stringMatching(/InProgress|Done/) });
  });

  it('answers an error for a settled or unknown request', async () => {
    const { body } = await create(usual());
    const again = await resolve(body.id, { action: 'create' });
    expect(again.body).toMatchObject({ status: 409, type: 'urn:notebridge:problem:wrong-state', state: 'InProgress' });
    expect((await resolve('6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b', { action: 'create' })).status).toBe(404);
  });
});

it('a timeout leaves one session, which its event settles', async () => {
  webhooks(false);
  world.platform.hold({ operation: OPERATION });
  const wish = usual();
  const asked = create(wish);
  await hasLeft(0);
  await world.advance('61 s');
  const { status, body } = await asked;
  expect([status, body.state]).toEqual([202, 'Unknown']);
  webhooks(true);
  const sessions = sessionsOf(wish.partnerAppointmentId);
  const [session] = sessions;
  if (session) takeStep(world.platform.simulator.state, session);
  await world.settle();
  const settled = await show(body.id);
  expect(settled.sessionId).not.toBeNull();
  expect(sessions.map(({ sessionId }) => sessionId)).toEqual([settled.sessionId]);
});

it('answers 501 and stores nothing without createSession in the contract', async () => {
  await world.restart({ PLATFORM_CONTRACT: contractFile([OPERATION]) });
  const { status, body } = await world.call<Problem>('POST', '/v1/sessions', { body: usual() });
  expect(status).toBe(501);
  expect(body.missing?.join()).toMatch(/createSession/);
  expect(await world.sql('SELECT 1 FROM sessions')).toEqual([]);
});
