import type { Platform } from '../../../harness/world/platform.js';
import type { FaultKind } from '../../../simulator/gate/fault-rule.js';
import { takeStep } from '../../../simulator/sessions/session-run.js';
import type { Page } from '../../../src/http/request/page.js';
import type { HealthReport } from '../../../src/operations/overview/health-report.js';
import { PlatformClient } from '../../../src/platform/clients/platform-client.js';
import { PlatformError } from '../../../src/platform/contract/platform-errors.js';
import type { SessionResponse } from '../../../src/sessions/model/session-view.js';
import { useWorld } from '../../world/use-world.js';
import { OPERATION, PLAN, useSessionRequests, usual } from './session-requests.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const requests = useSessionRequests(world);
const { create, createDuplicate, resolve, show, sent, injectFault, webhooks, sessionsOf, sessionOf } = requests;
const { shownAs, storedRequest, lost, published } = requests;

describe('a rejection by the platform', () => {
  it('answers 400 with its message, erases plan and text, and sends nothing again', async () => {
    const wish = { ...usual(), noteTemplateIds: ['no-such-template'], externalTreatmentPlan: PLAN };
    const { status, body } = await create(wish);
    expect([status, body.type]).toEqual([400, 'urn:notebridge:problem:platform-rejected']);
    expect(body.platformMessage).toMatch(/noteTemplateIds/);
    const session = await shownAs(body.session ?? '', 'Rejected');
    expect([session.error?.code, await storedRequest(session.id), sent()]).toEqual(['platform-rejected', null, 1]);
  });

  it('stays one when an event with the appointment arrives, which makes its own session', async () => {
    const wish = usual();
    const client = world.get(PlatformClient);
    const call = client.createSession.bind(client);
    // The platform executes the request, but a proxy answers 413.
    jest.spyOn(client, OPERATION).mockImplementationOnce(async (body) => {
      await call(body);
      throw new PlatformError('rejected', OPERATION, { status: 413 });
    });
    webhooks(false);
    const { status, body } = await create(wish);
    webhooks(true);
    expect([status, body.type]).toEqual([400, 'urn:notebridge:problem:platform-rejected']);
    const session = sessionOf(wish.partnerAppointmentId);
    takeStep(world.platform.simulator.state, session);
    const own = await shownAs(session.sessionId, 'Processing');
    expect([own.id === body.session, own.partnerAppointmentId]).toEqual([false, wish.partnerAppointmentId]);
    await shownAs(body.session ?? '', 'Rejected');
  });
});

describe('a second request for an appointment', () => {
  it('is answered 409, unless duplicates are allowed', async () => {
    const wish = usual();
    const first = await create(wish);
    const second = await create(wish);
    expect(second.body).toMatchObject({ status: 409, session: first.body.id, state: first.body.state });
    expect(second.body.type).toBe('urn:notebridge:problem:session-exists');
    expect((await create({ ...usual(), partnerAppointmentId: null })).status).toBe(201);
    const duplicate = await createDuplicate(wish);
    expect([duplicate.status, duplicate.body.id === first.body.id]).toEqual([201, false]);
  });

  it('is answered 409 while the first is Requested', async () => {
    const wish = usual();
    injectFault({ kind: 'rate-limit', retryAfterSeconds: 3_600 });
    const first = await create(wish, { wait: 0 });
    expect([first.status, first.body.state]).toEqual([202, 'Requested']);
    expect((await shownAs(first.body.id, 'Requested')).nextStep.why).toContain('rate-limited');
    const second = await createDuplicate(wish);
    expect(second.body).toMatchObject({ status: 409, session: first.body.id, state: 'Requested' });
    const abandoned = await resolve(first.body.id, { action: 'abandon' });
    expect(abandoned.body).toMatchObject({ state: 'Rejected', error: { code: 'abandoned' } });
    await world.advance('1 h');
    expect((await create(wish)).status).toBe(201);
  });
});

describe('an answer that may concern all requests', () => {
  it.each<[string, Parameters<Platform['injectFault']>[0]]>([
    ['429', { kind: 'rate-limit', retryAfterSeconds: 1 }],
    ['403', { kind: 'forbid' }],
  ])('%s: retries automatically and creates one session', async (_name, rule) => {
    const wish = usual();
    injectFault(rule);
    const { body } = await create(wish, { wait: 0 });
    await world.settle();
    await world.advance('6 s');
    await shownAs(body.id, 'InProgress');
    expect(sessionsOf(wish.partnerAppointmentId)).toHaveLength(1);
  });

  it.each([
    ['a redirect', { kind: 'status', status: 302 }, 'platform-address'],
    ['404', { kind: 'status', status: 404 }, 'platform-address'],
    ['405', { kind: 'status', status: 405 }, 'platform-address'],
    ['401', { kind: 'status', status: 401 }, 'platform-unauthorized'],
    ['403', { kind: 'forbid' }, 'platform-unauthorized'],
  ] as const)('%s keeps the request, which is sent again, and degrades health', async (_name, fault, code) => {
    injectFault(fault);
    const { body } = await create(usual(), { wait: 0 });
    expect((await shownAs(body.id, 'Requested')).nextStep.why).toContain(code);
    const { checks } = (await world.call<HealthReport>('GET', '/health/ready')).body;
    const stopped = code === 'platform-unauthorized' && fault.kind === 'status' ? 'sessions' : OPERATION;
    expect(checks.platform).toMatchObject({ status: 'degraded', reason: expect.stringContaining(stopped) });
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
    jest.spyOn(client, OPERATION).mockImplementation(async (body) => {
      if (body.partnerAppointmentId !== refused.partnerAppointmentId) return call(body);
      throw new PlatformError('not-found', OPERATION, { status: 404, platformMessage: 'No such template.' });
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
    expect(sessionOf(wish.partnerAppointmentId).sessionId).toBe(settled.sessionId);
    expect(await storedRequest(body.id)).toBeNull();
  });

  it('after a timeout leaves one session, which its event settles', async () => {
    webhooks(false);
    const wish = usual();
    world.platform.hold({ operation: OPERATION });
    const asked = create(wish);
    await world.untilCalled(OPERATION);
    await world.advance('61 s');
    const { status, body } = await asked;
    expect([status, body.state]).toEqual([202, 'Unknown']);
    webhooks(true);
    const session = sessionOf(wish.partnerAppointmentId);
    takeStep(world.platform.simulator.state, session);
    await world.settle();
    expect((await show(body.id)).sessionId).toBe(session.sessionId);
  });

  it('after a refused connection becomes Unknown, and nothing is sent a second time', async () => {
    const wish = usual();
    await lost(wish, 'refuse');
    const again = await create(wish);
    expect(again.body).toMatchObject({ status: 409, type: 'urn:notebridge:problem:session-unsettled' });
    await world.advance('1 h');
    await world.settle();
    expect(sent()).toBe(1);
  });

  it('is published as needing review, with its state', async () => {
    const { id } = await lost();
    expect((await published(id)).map(({ type, data }) => [type, data.state, data.provider, data.clients])).toEqual([
      ['session.needs-review', 'Unknown', 'p-1', ['c-1']],
    ]);
  });

  it('shows in the session what to look for on the platform, and the ways to resolve it', async () => {
    const wish = { ...usual(), externalTreatmentPlan: PLAN };
    const { id } = await lost(wish);
    const unknown = await show(id);
    const choices = [{ action: 'link' }, { action: 'create' }, { action: 'abandon' }];
    expect(unknown).toMatchObject({ state: 'Unknown', correlationId: wish.partnerAppointmentId, choices });
    const list = await world.call<Page<SessionResponse>>('GET', '/v1/sessions?state=Unknown');
    expect(list.body.items).toEqual([unknown]);
    await resolve(id, { action: 'abandon' });
    expect(await show(id)).toMatchObject({ state: 'Rejected', correlationId: null, choices: [] });
  });
});

describe('a request of a killed process', () => {
  let answers: ReturnType<typeof requests.withholdAnswers>;
  let working: Promise<void>;
  let id: string;

  beforeEach(async () => {
    webhooks(false);
    answers = requests.withholdAnswers();
    ({ id } = (await create(usual(), { wait: 0 })).body);
    working = world.settle();
    await world.untilCalled(OPERATION);
    world.forgetJobs();
    await world.advance('65 s');
    await world.work.sessions();
    expect((await show(id)).state).toBe('Requested'); // its answer may still arrive
    await world.advance('6 s');
    await world.work.sessions();
  });

  afterEach(async () => {
    answers.release();
    await working;
  });

  it('is Unknown once its answer can no longer arrive, and is not sent again', async () => {
    expect(await show(id)).toMatchObject({ state: 'Unknown', sessionId: null });
    expect([(await published(id)).map(({ type }) => type), sent()]).toEqual([['session.needs-review'], 1]);
  });

  it('is settled by an answer that arrives later all the same', async () => {
    answers.release();
    await working;
    expect((await shownAs(id, 'InProgress')).sessionId).not.toBeNull();
    expect(sent()).toBe(1);
  });

  it('is not changed by its late answer once it was sent again', async () => {
    const { body } = await resolve(id, { action: 'create' });
    answers.release();
    await working;
    expect((await shownAs(id, 'InProgress')).sessionId).toBe(body.sessionId);
    expect(sent()).toBe(2);
  });
});
