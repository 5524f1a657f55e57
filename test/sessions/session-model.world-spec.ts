import fc from 'fast-check';
import type { SimulatedSession } from '../../simulator/sessions/session.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import { propertyRuns } from '../../src/config/property-runs.spec-support.js';
import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { texts, useArrivingSessions } from './arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { newSession, notesOf, tell, unheard, fetches } = sessions;

/** The events of a session with AI notes (spec, Event sequences), with the platform's steps that precede each. */
const EVENTS = ['CREATED', 'PROCESSING_STARTED', 'PROCESSING_NOTES_COMPLETED', 'PROCESSING_COMPLETED'] as const;
type EventName = (typeof EVENTS)[number];

const PAUSES = ['1 ms', '300 ms', '2 s', '11 s'] as const;

/** What follows an event: a pause, and what goes wrong. */
interface After {
  pause: (typeof PAUSES)[number];
  /** `process`: the one that fetches is killed. `late`: so it is, and its answer arrives after another one. */
  crash: 'none' | 'process' | 'late';
  /** The platform sends the event once more. */
  isRepeated: boolean;
}

const anyAfter = fc.record<After>({
  pause: fc.constantFrom(...PAUSES),
  crash: fc.constantFrom('none', 'none', 'process', 'late'),
  isRepeated: fc.boolean(),
});

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
}

const deliver = async (session: SimulatedSession, name: EventName, more: object = {}) => {
  const aiNotesEnabled = name === 'CREATED' ? null : true;
  const { sessionId } = session;
  tell({ eventType: `SESSION_${name}`, sessionId, providerUserId: sessions.provider, aiNotesEnabled, ...more });
  await world.platform.webhooksSent();
};

/** Lets the platform get as far as it must be to send an event. */
const reach = (session: SimulatedSession, name: EventName, stage: { of: number }) =>
  unheard(() => {
    for (; stage.of < EVENTS.indexOf(name); stage.of += 1) takeStep(world.platform.simulator.state, session);
  });

/** Delivers the events in this order. */
async function happen(session: SimulatedSession, order: readonly EventName[], after: readonly After[]): Promise<void> {
  const stage = { of: 0 };
  const late: { answer(): Promise<void> }[] = [];
  for (const [at, name] of order.entries()) {
    const { pause, crash, isRepeated } = after[at] ?? { pause: '1 ms', crash: 'none', isRepeated: false };
    reach(session, name, stage);
    if (crash !== 'none') {
      const held = await world.untilHeld({ operation: 'getSession' }, () => deliver(session, name));
      world.forgetJobs();
      if (isRepeated) await deliver(session, name);
      if (crash === 'process') await held.answer();
      else late.push(held);
    } else {
      await deliver(session, name);
      if (isRepeated) await deliver(session, name);
    }
    await world.advance(pause);
    if (late.length === 0) await world.settle();
  }
  for (const held of late) await held.answer();
  for (const span of ['2 s', '12 s', '1 min', '10 min', '1 h', '2 h', '2 h', '2 h'] as const) {
    await world.advance(span);
    await world.settle();
  }
}

async function endOf({ sessionId }: SimulatedSession) {
  const { items } = (await world.call<Page<SessionResponse>>('GET', '/v1/sessions?limit=100')).body;
  const own = items.filter((item) => item.sessionId === sessionId);
  const [shown] = own;
  const { items: events } = (
    await world.call<Page<FeedEventResponse>>('GET', `/v1/events?limit=200&subject=sessions/${shown?.id}`)
  ).body;
  const types = events.map(({ type }) => type);
  return {
    rows: own.map(({ state, stateFrom, aiNotesEnabled, aiNotesFinal, notesRevision, nextStep }) => {
      return { state, stateFrom, aiNotesEnabled, aiNotesFinal, notesRevision, next: nextStep.what };
    }),
    notes: texts(await notesOf(sessionId)).length > 0,
    types,
  };
}

const DONE = {
  rows: [
    { state: 'Done', stateFrom: 'platform', aiNotesEnabled: true, aiNotesFinal: true, notesRevision: 1, next: 'none' },
  ],
  notes: true,
};

/** The feed of a session: created first, each at most once, processing-started before the end. */
function expectInOrder(types: readonly string[]): void {
  const order = ['session.created', 'session.processing-started', 'session.completed'];
  const found = types.filter((type) => order.includes(type));
  expect(found).toEqual(order.filter((type) => found.includes(type)));
  expect(types[0]).toBe('session.created');
  expect(types.filter((type) => type === 'session.transcript-ready')).toHaveLength(1);
  expect(types.filter((type) => type === 'session.notes-ready')).toHaveLength(1);
  expect(types).toContain('session.completed');
}

describe('a session that the EHR did not request', () => {
  it.each(permutations(EVENTS))('costs at most four fetches: %s, %s, %s, %s', async (...order) => {
    const session = unheard(() => newSession({ noteTemplateIds: [SOAP] }));
    const before = fetches();
    await happen(
      session,
      order,
      order.map((_, at) => ({ pause: PAUSES[at] ?? '2 s', crash: 'none', isRepeated: false })),
    );
    const { types, ...end } = await endOf(session);
    expect(end).toEqual(DONE);
    expectInOrder(types);
    expect(fetches() - before).toBeLessThanOrEqual(4);
  });

  it('ends the same after every order, pause, repeat, late answer and killed process', async () => {
    const anyHistory = fc.record({
      order: fc.constantFrom(...permutations(EVENTS)),
      after: fc.array(anyAfter, { minLength: 4, maxLength: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(anyHistory, async ({ order, after }) => {
        const session = unheard(() => newSession({ noteTemplateIds: [SOAP] }));
        await happen(session, order, after);
        const { types, ...end } = await endOf(session);
        expect(end).toEqual(DONE);
        expectInOrder(types);
      }),
      propertyRuns(0.06),
    );
  }, 300_000);
});
