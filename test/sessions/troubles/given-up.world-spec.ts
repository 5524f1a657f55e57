import { DueSessionsRepository } from '../../../src/sessions/due-sessions.repository.js';
import { SOAP } from '../../world/mirrored-people.js';
import { useWorld } from '../../world/use-world.js';
import { useArrivingSessions } from '../arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { newSession, toEnd, show, refresh, fetchAnother } = sessions;

/** What the feeder would add each second. */
const due = async () => (await world.get(DueSessionsRepository).due()).map(({ id }) => id);

/** A row that is due for ever does not let the world settle. */
async function pass(days: number): Promise<void> {
  for (let half = 0; half < days * 2; half += 1) {
    await world.advance('12 h');
    await world.settle(60).catch(() => undefined);
  }
}

describe('a session that is given up', () => {
  it('is not due any more, once the platform has not found it for seven days', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await world.settle();
    world.platform.simulator.state.sessions.remove(session);
    await refresh(session);
    await fetchAnother();
    await pass(9);
    expect((await show(session.sessionId)).nextStep.why).toMatch(/^given up/);
    expect(await due()).toEqual([]);
  });

  it('is not due any more, once it has not ended for thirty days', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    await world.settle();
    await pass(32);
    expect((await show(session.sessionId)).nextStep.why).toMatch(/^given up/);
    expect(await due()).toEqual([]);
  });
});
