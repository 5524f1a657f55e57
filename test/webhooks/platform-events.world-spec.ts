import { beginRegeneration, takeStep } from '../../simulator/sessions/session-run.js';
import { FEED_TYPES } from '../../src/words/feed-types.js';
import { useArrivingSessions } from '../sessions/arriving-sessions.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { deliveredEvents } from './delivered-events.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const { newSession, toEnd, show, read } = useArrivingSessions(world);
const { newest, feedOf, deliver } = deliveredEvents(world);

describe('with all fetch operations', () => {
  const finished = async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await read(session, 1);
    return { session, id: (await show(session.sessionId)).id };
  };

  test('the result of PROCESSING_SESSION_FINISHED is read by the route that the feed names', async () => {
    const { session, id } = await finished();
    const { processingId, sessionId } = session;
    await deliver({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId } });
    const event = await newest('processing.finished');
    expect(event).toMatchObject({ subject: `processing-sessions/${processingId}`, data: { processingId } });
    const path = `/v1/${event?.subject}`;
    expect((await world.call('GET', path)).body).toMatchObject({
      processingId,
      session: id,
      sessionId,
      fault: null,
      answer: { processing: { id: processingId, sessionId } },
    });
    expect((await world.call('GET', '/v1/processing-sessions/none')).status).toBe(404);
  });

  test('a fetched session has its state from the platform, before its end and after', async () => {
    const session = newSession();
    await world.settle();
    expect((await show(session.sessionId)).stateFrom).toBe('platform');
    toEnd(session);
    await world.settle();
    expect(await show(session.sessionId)).toMatchObject({ state: 'Done', stateFrom: 'platform' });
  });

  test('announces notes each time that other ones can be read', async () => {
    const { session } = await finished();
    beginRegeneration(world.platform.simulator.state, session, [SOAP]);
    takeStep(world.platform.simulator.state, session);
    await read(session, 2);
    const types = (await feedOf(session.sessionId)).map(([type]) => type);
    expect(types.filter((type) => type === 'session.notes-ready')).toHaveLength(2);
  });

  test('publishes USER_CREATED of a person of the EHR under its external id', async () => {
    const [user] = world.platform.simulator.state.users.list().filter(({ role }) => role === 'Client');
    const userId = user?.userId;
    await deliver({ eventType: 'USER_CREATED', payload: { userId, externalUserId: 'c-1', role: 'Client' } });
    expect(await newest('user.created')).toMatchObject({ subject: 'clients/c-1', data: { userId, role: 'Client' } });
  });

  test('OpenAPI describes every type of the feed', async () => {
    const { text } = await world.call('GET', '/openapi.json');
    for (const type of Object.keys(FEED_TYPES)) expect(text).toContain(`"${type}"`);
  });
});
