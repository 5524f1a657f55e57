import { createSession } from '../../../simulator/sessions/session-routes.js';
import { takeStep } from '../../../simulator/sessions/session-run.js';
import type { Page } from '../../../src/http/request/page.js';
import { PlatformClient } from '../../../src/platform/clients/platform-client.js';
import type { SessionResponse } from '../../../src/sessions/model/session-view.js';
import { SOAP } from '../../world/mirrored-people.js';
import { useWorld } from '../../world/use-world.js';
import { OPERATION, useSessionRequests, usual } from './session-requests.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const requests = useSessionRequests(world);
const { create, createDuplicate, resolve, show, sent, injectFault, webhooks, sessionsOf, sessionOf } = requests;
const { shownAs, storedRequest, lost, sendEvent, handled, published } = requests;

describe('an event that names the appointment of an unknown request', () => {
  it('settles it', async () => {
    const wish = usual();
    const unknown = await lost(wish);
    const { sessionId } = sessionOf(wish.partnerAppointmentId);
    sendEvent(sessionId, wish.partnerAppointmentId);
    expect(await handled(sessionId)).toMatchObject({ id: unknown.id, sessionId, choices: [] });
    expect((await published(unknown.id)).map(({ type }) => type)).toEqual(['session.needs-review', 'session.created']);
  });

  it('settles it by the generated appointment id if the EHR sent none', async () => {
    const { partnerAppointmentId: _, ...wish } = usual();
    const unknown = await lost(wish);
    const { sessionId } = sessionOf(`notebridge:${unknown.id}`);
    sendEvent(sessionId, `notebridge:${unknown.id}`);
    expect(await handled(sessionId)).toMatchObject({ id: unknown.id, partnerAppointmentId: null });
  });

  it('settles one that was sent again, too', async () => {
    const wish = usual();
    const unknown = await lost(wish);
    injectFault({ kind: 'refuse' });
    expect((await resolve(unknown.id, { action: 'create' })).body.state).toBe('Unknown');
    const { sessionId } = sessionOf(wish.partnerAppointmentId);
    sendEvent(sessionId, wish.partnerAppointmentId);
    expect((await handled(sessionId)).id).toBe(unknown.id);
  });

  it('merges it into the session that an event without the appointment made first', async () => {
    const wish = usual();
    const unknown = await lost(wish);
    const { sessionId } = sessionOf(wish.partnerAppointmentId);
    sendEvent(sessionId, undefined);
    const heard = await handled(sessionId);
    expect(heard.id).not.toBe(unknown.id);
    sendEvent(sessionId, wish.partnerAppointmentId, { eventType: 'SESSION_PROCESSING_STARTED' });
    expect([(await handled(sessionId)).id, (await show(unknown.id)).id]).toEqual([heard.id, heard.id]);
  });

  it('leaves the damaged facts of that session as they are', async () => {
    const wish = usual();
    const unknown = await lost(wish);
    const { sessionId } = sessionOf(wish.partnerAppointmentId);
    sendEvent(sessionId, undefined);
    const heard = await handled(sessionId);
    await world.sql(`UPDATE sessions SET facts = '\\x0102030405' WHERE id = $1`, [heard.id]);
    await resolve(unknown.id, { action: 'link', sessionId });
    expect(await show(unknown.id)).toMatchObject({ id: heard.id, unreadable: expect.arrayContaining(['date']) });
  });

  it.each<[string, (appointment: string) => [unknown, object]]>([
    ['of another appointment', () => ['another', {}]],
    ['of another provider', (appointment) => [appointment, { providerUserId: 'other-provider' }]],
  ])('does not settle it if it is %s', async (_name, namesOf) => {
    const wish = usual();
    const unknown = await lost(wish, 'refuse');
    const sessionId = `event-${wish.partnerAppointmentId}`;
    sendEvent(sessionId, ...namesOf(wish.partnerAppointmentId));
    await handled(sessionId);
    await shownAs(unknown.id, 'Unknown');
  });

  it('does not settle it by a session first seen before the request', async () => {
    const wish = usual();
    const sessionId = `old-${wish.partnerAppointmentId}`;
    sendEvent(sessionId, wish.partnerAppointmentId);
    await handled(sessionId);
    const unknown = await lost(wish, 'refuse', createDuplicate);
    sendEvent(sessionId, wish.partnerAppointmentId, { eventType: 'SESSION_PROCESSING_STARTED' });
    await shownAs(sessionId, 'Processing');
    await shownAs(unknown.id, 'Unknown');
  });

  it('does not settle it by another request’s session', async () => {
    const wish = usual();
    const first = await create(wish);
    const second = await lost(wish, 'refuse', createDuplicate);
    const session = sessionOf(wish.partnerAppointmentId);
    takeStep(world.platform.simulator.state, session);
    await shownAs(first.body.id, 'Processing');
    await shownAs(second.id, 'Unknown');
    expect((await resolve(second.id, { action: 'link', sessionId: session.sessionId })).body).toMatchObject({
      status: 409,
      type: 'urn:notebridge:problem:session-taken',
    });
  });

  it('does not settle the successor of an abandoned request, whose session it may be', async () => {
    const wish = usual();
    const former = await lost(wish);
    await resolve(former.id, { action: 'abandon' });
    const successor = await lost(wish, 'refuse');
    const { sessionId } = sessionOf(wish.partnerAppointmentId);
    sendEvent(sessionId, wish.partnerAppointmentId);
    const heard = await handled(sessionId);
    expect([former.id, successor.id]).not.toContain(heard.id);
    await shownAs(successor.id, 'Unknown');
    const { body } = await resolve(successor.id, { action: 'link', sessionId });
    expect([body.id, body.sessionId]).toEqual([heard.id, sessionId]);
  });

  it('does not settle the successor of one abandoned before its second attempt', async () => {
    const wish = usual();
    const former = await lost(wish);
    injectFault({ kind: 'forbid' });
    await resolve(former.id, { action: 'create' }, 0);
    await shownAs(former.id, 'Requested');
    expect((await resolve(former.id, { action: 'abandon' })).body.state).toBe('Rejected');
    await world.advance('5 min'); // The operation is no longer paused.
    const successor = await lost(wish, 'refuse');
    const { sessionId } = sessionOf(wish.partnerAppointmentId);
    sendEvent(sessionId, wish.partnerAppointmentId);
    await handled(sessionId);
    await shownAs(successor.id, 'Unknown');
  });
});

it('stays Unknown if its answer names another request’s session', async () => {
  const wish = usual();
  webhooks(false);
  const first = await create(wish);
  const second = await createDuplicate(wish, { wait: 0 });
  const answer = { sessionId: first.body.sessionId ?? '' };
  jest.spyOn(world.get(PlatformClient), OPERATION).mockResolvedValueOnce(answer);
  await shownAs(second.body.id, 'Unknown');
  expect((await show(answer.sessionId)).id).toBe(first.body.id);
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
    await world.untilCalled(OPERATION, before);
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
    expect(await storedRequest(unknown.id)).toBeNull();
    expect((await create(wish)).status).toBe(201);
  });

  it('link: fetches the session and its notes', async () => {
    const wish = usual();
    const unknown = await lost(wish);
    const session = sessionOf(wish.partnerAppointmentId);
    webhooks(false);
    while (session.nextStep) takeStep(world.platform.simulator.state, session);
    const { body } = await resolve(unknown.id, { action: 'link', sessionId: session.sessionId });
    expect([body.id, body.sessionId]).toEqual([unknown.id, session.sessionId]);
    expect(await shownAs(unknown.id, 'Done')).toMatchObject({ notesRevision: 1 });
  });

  it('link: answers with the session that an event made first, and the request’s id leads to it', async () => {
    const wish = usual();
    const unknown = await lost(wish);
    const { sessionId } = sessionOf(wish.partnerAppointmentId);
    sendEvent(sessionId, undefined); // Without an appointment it matches no request.
    const heard = await handled(sessionId);
    expect(heard.id).not.toBe(unknown.id);
    const { status, body } = await resolve(unknown.id, { action: 'link', sessionId });
    expect([status, body.id, body.sessionId]).toEqual([200, heard.id, sessionId]);
    expect((await show(unknown.id)).id).toBe(heard.id);
    const { items } = (await world.call<Page<SessionResponse>>('GET', '/v1/sessions')).body;
    expect(items.map(({ id }) => id)).toEqual([heard.id]);
    const merged = (await published(unknown.id)).filter(({ type }) => type === 'session.merged');
    expect(merged).toMatchObject([{ subject: `sessions/${heard.id}`, data: { id: unknown.id, into: heard.id } }]);
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
    const { sessionId } = sessionOf(wish.partnerAppointmentId);
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
