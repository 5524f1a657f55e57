import fc from 'fast-check';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import { propertyRuns } from '../../src/config/property-runs.spec-support.js';
import { Database } from '../../src/database/database.js';
import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import type { Page } from '../../src/http/request/page.js';
import { RequestOutcomes } from '../../src/sessions/create/request-outcomes.repository.js';
import { RequestSender } from '../../src/sessions/create/request-sender.js';
import { SESSION_COLUMNS } from '../../src/sessions/model/session-columns.js';
import type { SessionRow } from '../../src/sessions/model/session-row.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { mirroredPeople, SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
let people: Awaited<ReturnType<typeof mirroredPeople>>;

beforeEach(async () => {
  people = await mirroredPeople(world);
  // A test sends each event itself.
  world.platform.set({ webhookDropRate: 1 });
});

afterEach(() => world.platform.set({ webhookDropRate: 0 }));

/** The events of a session with AI notes (spec, Event sequences). */
const EVENTS = ['CREATED', 'PROCESSING_STARTED', 'PROCESSING_NOTES_COMPLETED', 'PROCESSING_COMPLETED'] as const;

/** The outcomes of a request whose attempt is in flight. `lost`: its process dies. `late`: its answer arrives later. */
const OUTCOMES = [['accepted'], ['lost'], ['lost', 'late']] as const;

type Step = (typeof EVENTS)[number] | (typeof OUTCOMES)[number][number];

/** A request in flight, and its session on the platform, which is Done with notes. */
async function requested(appointment: string) {
  const body = {
    provider: 'p-1',
    client: 'c-1',
    noteTemplateIds: [SOAP],
    input: { text: { text: 'x' } },
    partnerAppointmentId: appointment,
  };
  const { id } = (await world.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 0 })).body;
  const { state } = world.platform.simulator;
  const session = createSession(state, {
    providerUserId: people.provider,
    clientUserIds: [people.client],
    noteTemplateIds: [SOAP],
    input: { kind: 'text', text: 'x' },
    date: '2026-03-01T09:00:00.000Z',
    partnerAppointmentId: appointment,
  });
  while (session.nextStep) takeStep(state, session);
  await world.platform.webhooksSent();
  // The attempt of a process that sends no heartbeat.
  await world.sql(
    `UPDATE sessions SET attempted_at = $2, due_at = NULL, lease_owner = gen_random_uuid(), lease_no = 1,
       lease_safe_at = $2 WHERE id = $1`,
    [id, world.now()],
  );
  return { id, sessionId: session.sessionId };
}

const answered = (id: string, sessionId: string) =>
  world.get(Database).transaction(async (tx) => {
    const open = `SELECT ${SESSION_COLUMNS} FROM sessions t
      WHERE id = $1 AND state IN ('Requested', 'Unknown') FOR UPDATE`;
    const { rows } = await tx.query<SessionRow>(open, [id]);
    if (rows[0]) await world.get(RequestOutcomes).accepted(tx, rows[0], { sessionId });
  });

interface History {
  steps: readonly Step[];
  crashes: readonly boolean[];
  /** Events without the appointment, so that they match no request, and may make a row first. */
  unnamed: readonly Step[];
}

/** Does each step in its own transaction. A crash after a step repeats it, as a delivery without an outcome is. */
async function happen({ steps, crashes, unnamed }: History) {
  const appointment = `a-${world.now().getTime()}`;
  const { id, sessionId } = await requested(appointment);
  for (const [at, step] of steps.entries()) {
    for (let time = 0; time <= Number(crashes[at] ?? false); time += 1) {
      if (step === 'accepted' || step === 'late') await answered(id, sessionId);
      else if (step === 'lost') await world.get(RequestSender).settleLost();
      else {
        const event = {
          eventType: `SESSION_${step}`,
          sessionId,
          providerUserId: people.provider,
          partnerAppointmentId: unnamed.includes(step) ? null : appointment,
          aiNotesEnabled: step === 'CREATED' ? null : true,
        };
        world.platform.set({ webhookDropRate: 0 });
        world.platform.simulator.state.deliveries.send(event as never);
        await world.platform.webhooksSent();
        world.platform.set({ webhookDropRate: 1 });
      }
      await world.work.inbox();
    }
  }
  for (let round = 0; round < 3; round += 1) {
    await world.advance('2 s');
    await world.settle();
  }
  return { id, sessionId, appointment };
}

/** Published once per session, also after repeats. */
const ONCE = ['session.created', 'session.completed', 'session.notes-ready'];

/** All that readers see of a session in the end. */
async function endOf({ id, sessionId, appointment }: { id: string; sessionId: string; appointment: string }) {
  const { items } = (await world.call<Page<SessionResponse>>('GET', `/v1/sessions?appointment=${appointment}`)).body;
  const { items: events } = (
    await world.call<Page<FeedEventResponse>>('GET', `/v1/events?limit=200&subject=sessions/${id}`)
  ).body;
  const published = events.filter(({ type }) => type !== 'session.needs-review');
  return {
    sessions: items.map((item) => [item.id === id, item.sessionId === sessionId, item.state, item.notesRevision]),
    // The platform's repeats are published again.
    published: [...new Set(published.map(({ type, data }) => `${type} ${String(data.state)}`))].sort(),
    once: ONCE.map((type) => published.filter((event) => event.type === type).length),
    others: published.filter(({ subject }) => subject !== `sessions/${id}`).length,
    reviews: events.length - published.length,
  };
}

/** Every order of the events and the outcome in which the outcome's own steps keep their order. */
const anyHistory = fc.constantFrom(...OUTCOMES).chain((outcome) =>
  fc.record({
    steps: fc.shuffledSubarray([...EVENTS, ...outcome], { minLength: EVENTS.length + outcome.length }).map((steps) => {
      const ordered = [...outcome];
      return steps.map((step): Step => (outcome.some((own) => own === step) ? (ordered.shift() ?? step) : step));
    }),
    crashes: fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }),
    unnamed: fc.oneof(fc.constant([]), fc.subarray([...EVENTS], { maxLength: EVENTS.length - 1 })),
  }),
);

describe('a requested session', () => {
  it('ends as one session and one feed, in every order of its events, its answer and crashes', async () => {
    await fc.assert(
      fc.asyncProperty(anyHistory, async (history) => {
        const end = await endOf(await happen(history));
        expect(end).toEqual({
          sessions: [[true, true, 'Done', 1]],
          published: [
            'session.completed Done',
            'session.created InProgress',
            'session.notes-completed Processing',
            'session.notes-ready Done',
            'session.processing-started Processing',
          ],
          once: [1, 1, 1],
          others: history.unnamed.length === 0 ? 0 : end.others,
          reviews: end.reviews,
        });
        expect(end.reviews).toBeLessThanOrEqual(1);
      }),
      propertyRuns(0.04),
    );
  });
});
