import { PrismaService } from '../../../src/database/prisma.service.js';
import { PlatformError } from '../../../src/platform/contract/platform-errors.js';
import { RequestAttempts } from '../../../src/sessions/create/request-attempts.repository.js';
import type { SessionResponse } from '../../../src/sessions/model/session-view.js';
import { SOAP } from '../../world/mirrored-people.js';
import { useWorld } from '../../world/use-world.js';
import { type Problem, useArrivingSessions } from '../arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { show, newSession, toEnd, unheard } = sessions;

const WISH = { provider: 'p-1', client: 'c-1', noteTemplateIds: [SOAP], input: { text: { text: 'Slept better.' } } };
const request = async (more: object = {}) =>
  (await world.call<SessionResponse & Problem>('POST', '/v1/sessions', { body: { ...WISH, ...more }, wait: 0 })).body;
const sent = () => world.platform.arrivals('createSession');
const sending = (body: object) => world.call('PUT', '/v1/sending', { body });
const resolve = (id: string, action: string) =>
  world.call('POST', `/v1/sessions/${id}/resolve`, { body: { action }, wait: 0 });

/** The platform created a session by a request of this service, whose event names it. */
async function eventOf(id: string): Promise<string> {
  const session = unheard(() => newSession({ partnerAppointmentId: `notebridge:${id}`, noteTemplateIds: [SOAP] }));
  const { sessionId, partnerAppointmentId } = session;
  sessions.tell({
    ...{ eventType: 'SESSION_CREATED', sessionId, partnerAppointmentId },
    ...{ providerUserId: sessions.provider, aiNotesEnabled: null },
  });
  await world.settle();
  return sessionId;
}

describe('an event that carries the appointment of a request', () => {
  it('settles it, if it is Unknown since the release after a restore', async () => {
    await sending({ held: true, reason: 'CASE-1' });
    const { id } = await request();
    await world.settle();
    await world.advance('1 s');
    await sending({ held: true, reason: 'CASE-2' });
    await sending({ held: false, restored: true });
    await world.settle();
    expect((await show(id)).state).toBe('Unknown');
    const sessionId = await eventOf(id);
    expect((await show(id)).sessionId).toBe(sessionId);
  });

  it('settles it, if an operator has it sent again while sending is held: it is not sent twice', async () => {
    world.platform.set({ webhookDropRate: 1 });
    world.platform.injectFault({ operation: 'createSession', kind: 'commit-then-cut' });
    const { id } = await request();
    await world.settle();
    world.platform.set({ webhookDropRate: 0 });
    expect((await show(id)).state).toBe('Unknown');
    await sending({ held: true, reason: 'CASE-1' });
    await resolve(id, 'create');
    const { sessionId, partnerAppointmentId } = world.platform.simulator.state.sessions.list().at(-1) ?? {};
    sessions.tell({
      ...{ eventType: 'SESSION_CREATED', sessionId, partnerAppointmentId },
      ...{ providerUserId: sessions.provider, aiNotesEnabled: null },
    });
    await world.settle();
    await sending({ held: false });
    await world.settle();
    expect([sent(), (await show(id)).sessionId]).toEqual([1, sessionId]);
  });

  it('settles it, although the event does not name the provider', async () => {
    world.platform.set({ webhookDropRate: 1 });
    world.platform.injectFault({ operation: 'createSession', kind: 'commit-then-cut' });
    const { id } = await request();
    await world.settle();
    world.platform.set({ webhookDropRate: 0 });
    const { sessionId, partnerAppointmentId } = world.platform.simulator.state.sessions.list().at(-1) ?? {};
    sessions.tell({ eventType: 'SESSION_CREATED', sessionId, partnerAppointmentId, aiNotesEnabled: null });
    await world.settle();
    expect((await show(id)).sessionId).toBe(sessionId);
  });
});

describe('an attempt of which nothing was sent', () => {
  it('is made again after a fault of the database, and the request is not Unknown', async () => {
    const { id } = await request();
    const prisma = world.get(PrismaService);
    const query = prisma.$queryRawUnsafe;
    const spy = jest.spyOn(prisma, '$queryRawUnsafe').mockImplementation(((text: string, ...values: unknown[]) => {
      if (!text.includes('json_build_object')) return Reflect.apply(query, prisma, [text, ...values]);
      spy.mockRestore();
      return Promise.reject(Object.assign(new Error('terminating connection'), { code: '57P01' }));
    }) as never);
    await world.settle();
    expect((await show(id)).state).not.toBe('Unknown');
    expect(sent()).toBeLessThanOrEqual(1);
  });

  it('lets the next probe go at once, if it was the probe of a pause', async () => {
    const bad = await request();
    const good = await request();
    await world.sql('UPDATE sessions SET request = $2 WHERE id = $1', [bad.id, Buffer.from('damaged')]);
    await world.sql('UPDATE sessions SET due_at = $2 WHERE id = $1', [bad.id, new Date(world.now().getTime() - 1_000)]);
    await world.sql(
      `INSERT INTO platform_pauses (key, reason, status, failures, failing_since, paused_until)
       VALUES ('sessions', 'unauthorized', 401, 1, $1, $1)`,
      [new Date(world.now().getTime() - 1)],
    );
    world.forgetJobs();
    await world.settle();
    for (let second = 0; second < 10; second += 1) {
      await world.advance('1 s');
      await world.settle();
    }
    expect((await show(good.id)).state).toBe('InProgress');
  });
});

describe('a client that is deleted with its notes', () => {
  beforeEach(() => world.restart({ ERASE_NOTES_OF_DELETED_CLIENTS: 'erase' }));

  it('has no request sent after its deletion, although one was in flight that had no effect', async () => {
    const { id } = await request();
    await world.untilHeld({ operation: 'createSession' });
    await world.call('DELETE', '/v1/clients/c-1', { wait: 0 });
    // The platform's answer to the attempt in flight is a 429.
    const attempts = world.get(RequestAttempts);
    const row = await world.get(PrismaService).session.findUniqueOrThrow({ where: { id } });
    const attempt = { id, no: row.callNo, row, at: world.now(), probes: [], refusedAt: null, refusedStatus: null };
    await attempts.failed(attempt, new PlatformError('rate-limited', 'createSession', { status: 429 }));
    const before = sent();
    world.forgetJobs();
    await world.advance('10 s');
    await world.settle();
    expect(sent()).toBe(before);
    expect((await show(id)).state).toBe('Rejected');
  });

  it('has no answer of the Processing API stored after its deletion', async () => {
    await world.call('DELETE', '/v1/clients/c-1', { wait: 0 });
    await world.settle();
    const session = unheard(() => newSession({ noteTemplateIds: [SOAP] }));
    unheard(() => toEnd(session));
    sessions.tell({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId: session.processingId } });
    await world.settle();
    await world.advance('1 min');
    await world.settle();
    expect((await sessions.notesOf(session.sessionId)).documents).toEqual([]);
    const { body } = await world.call<{ answer: unknown }>('GET', `/v1/processing-sessions/${session.processingId}`);
    expect(body.answer).toBeNull();
  });
});
