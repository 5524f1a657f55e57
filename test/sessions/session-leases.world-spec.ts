import { randomUUID } from 'node:crypto';
import type { WorldService } from '../../harness/world/world-service.js';
import type { SimulatedSession } from '../../simulator/sessions/session.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { beginRegeneration, takeStep } from '../../simulator/sessions/session-run.js';
import type { NotesResponse } from '../../src/sessions/model/session-view.js';
import { SessionRefresher } from '../../src/sessions/refresh/refresh.repository.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });

describe('a process killed or stopped during a fetch', () => {
  let first: WorldService;
  let session: SimulatedSession;
  let fetching: Promise<void>;
  const id = randomUUID();

  beforeEach(async () => {
    const { state } = world.platform.simulator;
    world.platform.set({ webhookUrl: '' });
    session = createSession(state, {
      providerUserId: 'provider-1',
      clientUserIds: [],
      noteTemplateIds: [SOAP],
      input: { kind: 'text', text: 'They discussed the week.' },
      date: '2026-03-01T09:00:00.000Z',
    });
    while (session.nextStep) takeStep(state, session);
    first = await world.startAnother();
    world.platform.hold({ operation: 'getSession' });
    await world.sql(
      `INSERT INTO sessions (id, shown_id, session_id, state, wanted_generation, due_at)
       VALUES ($1, $1, $2, 'Processing', 1, now())`,
      [id, session.sessionId],
    );
    await world.advance('1 ms');
    fetching = first.work.sessions();
    await world.untilCalled('getSession');
  });

  afterEach(async () => {
    world.platform.release();
    await fetching;
  });

  const row = async () => (await world.sql('SELECT * FROM sessions'))[0];
  const generations = async () => {
    const { body } = await world.call<NotesResponse>('GET', `/v1/sessions/${id}/notes`);
    return new Set(
      body.documents.flatMap(({ notes }) => notes.flatMap(({ text }) => /Generation \d+/.exec(text)?.[0] ?? [])),
    );
  };

  it('keeps its lease until its heartbeat expires, then another process fetches', async () => {
    await world.advance('7 s');
    await world.settle();
    expect(world.platform.arrivals('getSession')).toBe(1);
    await world.advance('2 s');
    await world.settle();
    expect(await generations()).toEqual(new Set(['Generation 1']));
    expect(await row()).toMatchObject({ lease_owner: null, lease_no: 2 });
  });

  it('stores nothing when it continues, and leaves the new lease alone', async () => {
    const refresher = first.app.get(SessionRefresher, { strict: false });
    const store = refresher.storeAnswer.bind(refresher);
    const hasAnswer = new Promise<void>((resolve) => {
      jest.spyOn(refresher, 'storeAnswer').mockImplementationOnce(async (...answer) => {
        resolve();
        await isFetchedAgain;
        return store(...answer);
      });
    });
    let fetchedAgain = () => {};
    const isFetchedAgain = new Promise<void>((resolve) => {
      fetchedAgain = resolve;
    });
    world.platform.release();
    await hasAnswer; // it has the answer, but its lease is gone
    beginRegeneration(world.platform.simulator.state, session, [SOAP]);
    takeStep(world.platform.simulator.state, session);
    await world.advance('9 s');
    const held = await world.untilHeld({ operation: 'getSession' });
    const leased = await row();
    expect(leased).toMatchObject({ lease_no: 2 });
    fetchedAgain();
    await fetching;
    expect(await row()).toEqual(leased);
    await held.answer();
    expect(await generations()).toEqual(new Set(['Generation 2']));
  });
});
