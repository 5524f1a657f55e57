import { beginRegeneration, takeStep } from '../../../simulator/sessions/session-run.js';
import { viewOf } from '../../../simulator/sessions/session-view.js';
import type { SessionResponse } from '../../../src/sessions/model/session-view.js';
import { ProcessingsRepository } from '../../../src/sessions/processing/processings.repository.js';
import { contractFile } from '../../support/contract-file.js';
import { DAP, SOAP } from '../../world/mirrored-people.js';
import { useWorld } from '../../world/use-world.js';
import { texts, useArrivingSessions } from '../arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { newSession, toEnd, tell, unheard, show, notesOf, refresh, fetches } = sessions;

const pass = async (...spans: Parameters<typeof world.advance>[0][]) => {
  for (const span of spans) {
    await world.advance(span);
    await world.settle();
  }
};
const done = async (more: object = {}) => {
  const session = newSession({ noteTemplateIds: [SOAP], ...more });
  toEnd(session);
  await world.settle();
  await pass('2 s', '10 s');
  return session;
};
const damageFacts = () => world.sql(`UPDATE sessions SET facts = '\\x0102030405'`);

describe('a session whose stored facts are damaged', () => {
  it('still gets the notes that an event announces', async () => {
    const session = await done();
    await damageFacts();
    beginRegeneration(world.platform.simulator.state, session, [SOAP]);
    while (session.nextStep) takeStep(world.platform.simulator.state, session);
    await world.settle();
    await pass('1 min', '1 h', '1 h', '1 d');
    expect(texts(await notesOf(session.sessionId)).join()).toContain('(Generation 2.)');
  });

  it('shows the answer of an update that the platform accepted', async () => {
    const session = await done();
    await damageFacts();
    const { status } = await world.call<SessionResponse>('PATCH', `/v1/sessions/${session.sessionId}`, {
      body: { noteTemplateIds: [SOAP, DAP] },
      wait: 0,
    });
    expect([session.noteTemplateIds.length, status]).toEqual([2, 200]);
  });
});

it('announced notes are looked up again if a replica lags, although other notes came without an announcement', async () => {
  // Two documents, of which COMPLETED announced one: the events of the notes were lost.
  const session = unheard(() => newSession({ noteTemplateIds: [SOAP, DAP] }));
  unheard(() => toEnd(session));
  tell({
    ...{ eventType: 'SESSION_PROCESSING_COMPLETED', sessionId: session.sessionId },
    ...{ providerUserId: sessions.provider, aiNotesEnabled: true },
  });
  await world.settle();
  await pass('2 s', '1 min', '10 min');
  const before = JSON.parse(JSON.stringify(viewOf(session, undefined)));
  world.platform.injectFault({ operation: 'getSession', kind: 'answer', count: 1, body: before });
  const asked = fetches();
  sessions.regenerate(session);
  await world.settle();
  await pass('2 s', '10 s', '1 min', '10 min', '1 h', '1 d');
  expect(fetches()).toBeGreaterThan(asked);
  expect(texts(await notesOf(session.sessionId)).join()).toContain('(Generation 2.)');
});

it('an answer is dropped only if a later call began: not if calls pause', async () => {
  const session = await done();
  await refresh(session);
  const held = await world.untilHeld({ operation: 'getSession', match: { sessionId: session.sessionId } });
  const { fetchedAt } = await show(session.sessionId);
  world.forgetJobs(); // as if this process had stalled
  await world.sql(
    `INSERT INTO platform_pauses (key, limited_until, limited_times) VALUES ('sessions', $1, 1)
     ON CONFLICT (key) DO UPDATE SET limited_until = excluded.limited_until`,
    [new Date(world.now().getTime() + 3_600_000)],
  );
  // An event of the session adds its job in another process.
  const { sessionId } = session;
  tell({
    eventType: 'SESSION_PROCESSING_COMPLETED',
    sessionId,
    providerUserId: sessions.provider,
    aiNotesEnabled: true,
  });
  await world.settle();
  await held.answer();
  expect((await show(sessionId)).fetchedAt).not.toBe(fetchedAt);
});

it('a lookup that ran twice counts the notes of its events once', async () => {
  const session = await done();
  const { processingId, sessionId } = session;
  await world.sql(
    `INSERT INTO platform_pauses (key, limited_until, limited_times) VALUES ('sessions', $1, 1)
     ON CONFLICT (key) DO UPDATE SET limited_until = excluded.limited_until`,
    [new Date(world.now().getTime() + 60_000)],
  );
  tell({ eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload: { processingId } });
  await world.settle();
  await world.advance('61 s');
  // A process that stalled lives on, and so does the one that took its job.
  const rows = world.get(ProcessingsRepository);
  const lookups = [await rows.begin(processingId), await rows.begin(processingId)];
  for (const lookup of lookups)
    if (lookup) await rows.storeAnswer(lookup, { raw: {}, session: undefined, sessionId } as never);
  const [own] = await world.sql('SELECT processing_notes AS notes_events FROM sessions');
  const [processing] = await world.sql('SELECT notes_events FROM processing_sessions');
  expect([own, processing]).toEqual([{ notes_events: 1 }, { notes_events: 0 }]);
});

it('nextStep names no lookup where the contract has no getSession', async () => {
  await world.restart({ PLATFORM_CONTRACT: contractFile(['getSession', 'getProcessingSession']) });
  const session = newSession({ noteTemplateIds: [SOAP] });
  await world.settle();
  expect((await show(session.sessionId)).nextStep.what).toBe('none');
});
