import { randomUUID } from 'node:crypto';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { SimulatedSession } from '../simulator/sessions/session.js';
import { createSession } from '../simulator/sessions/session-routes.js';
import { beginRegeneration, takeStep } from '../simulator/sessions/session-run.js';
import type { NotesResponse } from '../src/sessions/model/session-view.js';
import { SOAP } from './support/arriving-sessions.js';
import { type Mirror, useMirrors } from './support/service.js';
import { sealedFacts } from './support/session-facts.js';

const newMirror = useMirrors();

describe('a process that is killed or stopped in the middle of a fetch', () => {
  let mirror: Mirror;
  let first: Service;
  let session: SimulatedSession;
  const id = randomUUID();

  beforeEach(async () => {
    mirror = await newMirror({
      platform: { stepMs: 0, processingEvents: false },
      env: { PLATFORM_TIMEOUT_SECONDS: '60' },
    });
    const { state } = mirror.simulator;
    session = createSession(state, {
      providerUserId: 'provider-1',
      clientUserIds: [],
      noteTemplateIds: [SOAP],
      input: { kind: 'text', text: 'They spoke of the week.' },
      date: '2026-03-01T09:00:00.000Z',
    });
    while (session.nextStep) takeStep(state, session);
    first = await mirror.start();
    mirror.hold({ operation: 'getSession' });
    await mirror.sql(
      `INSERT INTO sessions (id, session_id, state, facts, wanted_generation, due_at)
       VALUES ($1, $2, 'Processing', $3, 1, now())`,
      [id, session.sessionId, sealedFacts(id, { session_id: session.sessionId })],
    );
    await until('its fetch is under way', () => mirror.arrivals('getSession') === 1);
  });

  const row = async () => (await mirror.sql<Record<string, unknown>>('SELECT * FROM sessions WHERE id = $1', [id]))[0];
  /** As if the seconds had passed for which it counts as alive. */
  const passAway = (owner: unknown) =>
    mirror.sql(
      `WITH gone AS (UPDATE workers SET alive_until = now() WHERE id = $1)
       UPDATE sessions SET lease_safe_at = now() WHERE lease_owner = $1`,
      [owner],
    );
  const generations = async (service: Service) => {
    const { body } = await service.call<NotesResponse>('GET', `/v1/sessions/${id}/notes`);
    return body.documents.flatMap(({ notes }) => notes.flatMap(({ text }) => /Generation \d+/.exec(text)?.[0] ?? []));
  };

  it('holds it only until it counts as dead: then the next process fetches the notes', async () => {
    const { lease_owner: owner } = (await row()) ?? {};
    await first.kill();
    const next = await mirror.start();
    await passAway(owner);
    await until('the notes are there', async () => (await generations(next)).includes('Generation 1'));
    expect(await row()).toMatchObject({ lease_owner: null, lease_no: 2 });
  });

  it('stores nothing when it goes on, and takes nothing from who has the session now', async () => {
    const { lease_owner: owner } = (await row()) ?? {};
    first.signal('SIGSTOP');
    mirror.release(); // its answer lies in its socket
    beginRegeneration(mirror.simulator.state, session, [SOAP]);
    takeStep(mirror.simulator.state, session);
    mirror.hold({ operation: 'getSession' });
    await passAway(owner);
    const next = await mirror.start();
    await until('the session is being fetched again', () => mirror.arrivals('getSession') === 2);
    const held = await row();
    first.signal('SIGCONT');
    await first.kill('SIGTERM'); // what it works on is ended first
    expect(await row()).toEqual(held);
    mirror.release();
    await until('the newest notes are there', async () => (await generations(next)).includes('Generation 2'));
  });
});
