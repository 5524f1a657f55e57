import { DueSessionsRepository } from '../../../src/sessions/due-sessions.repository.js';
import { SOAP } from '../../world/mirrored-people.js';
import { useWorld } from '../../world/use-world.js';
import { useArrivingSessions } from '../arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { newSession, toEnd, show, refresh, fetches, fetchAnother } = sessions;

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

  it('delays no other: a refresh of all is done although fifty were given up', async () => {
    const other = newSession({ noteTemplateIds: [SOAP] });
    toEnd(other);
    await world.settle();
    await world.advance('1 h');
    for (let count = 0; count < 50; count += 1) newSession({ noteTemplateIds: [SOAP] });
    await world.settle();
    // Their daily lookup is due on the day on which they are given up.
    await world.sql(
      `UPDATE sessions SET created_at = now() - interval '31 days', last_event_at = now() - interval '31 days',
        updated_at = now() - interval '31 days', fetched_at = now() - interval '1 day', due_at = now() WHERE session_id <> $1`,
      [other.sessionId],
    );
    const { lookUps } = other;
    await world.call('POST', '/v1/sessions/refreshes', {
      body: { since: new Date(world.now().getTime() - 2 * 3_600_000).toISOString() },
    });
    for (let minute = 0; minute < 10; minute += 1) {
      await world.advance('1 min');
      await world.settle(5).catch(() => undefined);
    }
    expect(other.lookUps).toBeGreaterThan(lookUps);
  });
});
