import { takeStep } from '../../../simulator/sessions/session-run.js';
import type { FeedEventResponse } from '../../../src/feed/feed.dto.js';
import type { Page } from '../../../src/http/request/page.js';
import { SOAP } from '../../world/mirrored-people.js';
import { useWorld } from '../../world/use-world.js';
import { useArrivingSessions } from '../arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { newSession, toEnd, tell, unheard, show } = sessions;

const typesOf = async (sessionId: string): Promise<string[]> => {
  const { id } = await show(sessionId);
  const path = `/v1/events?after=0&limit=200&subject=sessions/${id}`;
  return (await world.call<Page<FeedEventResponse>>('GET', path)).body.items.map(({ type }) => type);
};
const say = async (sessionId: string, name: string, aiNotesEnabled: boolean) => {
  tell({ eventType: `SESSION_PROCESSING_${name}`, sessionId, providerUserId: sessions.provider, aiNotesEnabled });
  await world.settle();
};
const pass = async (...spans: Parameters<typeof world.advance>[0][]) => {
  for (const span of spans) {
    await world.advance(span);
    await world.settle();
  }
};

/** A session of which the platform answers Processing. */
async function processing(more: Parameters<typeof newSession>[0] = {}) {
  const session = Object.assign(newSession({ noteTemplateIds: [SOAP] }), more);
  takeStep(world.platform.simulator.state, session);
  await world.settle();
  return session;
}

describe('an end that events said and no answer showed for ten minutes', () => {
  it.each([
    ['FAILED', { willFail: true }, 'Error'],
    ['COMPLETED', { aiNotes: false }, 'Done'],
  ] as const)('is looked up until an answer shows it: %s', async (name, more, state) => {
    const session = await processing(more);
    await say(session.sessionId, name, false);
    await pass('3 s', '1 min', '10 min');
    expect(await typesOf(session.sessionId)).toContain(`session.${name.toLowerCase()}`);
    unheard(() => toEnd(session));
    for (let day = 0; day < 29; day += 1) await pass('1 d');
    expect(await show(session.sessionId)).toMatchObject({ state, stateFrom: 'platform' });
  });

  it('is followed by no session.processing-started in the feed', async () => {
    const session = await processing();
    await say(session.sessionId, 'COMPLETED', true);
    await pass('3 s', '1 min', '10 min', '1 h', '1 d');
    const types = await typesOf(session.sessionId);
    const [completed, started] = ['session.completed', 'session.processing-started'].map((type) =>
      types.lastIndexOf(type),
    );
    expect(types).toContain('session.completed');
    expect(started).toBeLessThan(completed as number);
  });
});
