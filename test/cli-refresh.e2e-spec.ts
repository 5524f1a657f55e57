import type { Program } from '../harness/program.js';
import { until } from '../harness/until.js';
import type { SimulatedSession } from '../simulator/sessions/session.js';
import { beginRegeneration, takeStep } from '../simulator/sessions/session-run.js';
import { ADMIN_KEY } from './support/app.js';
import { SOAP, texts, useArrivingSessions } from './support/arriving-sessions.js';
import { usePrograms } from './support/programs.js';
import { callSimulator } from './support/simulator-call.js';

// Sessions without an end are not looked up by themselves here: whatever is fetched, the command asked for it.
const QUIET = {
  SESSION_REFRESH_AFTER_SECONDS: '3600',
  SESSION_REFRESH_EVERY_SECONDS: '3600',
  PLATFORM_TIMEOUT_SECONDS: '60',
};

const world = useArrivingSessions(QUIET);
const { newSession, toEnd, read, notesOf, show } = world;
const startProgram = usePrograms();

function start(args: string[]): Promise<Program> {
  const env = { NOTEBRIDGE_URL: world.service.url, NOTEBRIDGE_KEY: ADMIN_KEY };
  return startProgram({ file: 'dist/src/cli/main.js', args: ['refresh', ...args], env });
}

/** Runs `notebridge refresh` to its end. */
async function refresh(...args: string[]): Promise<{ code: number | null; output: string }> {
  const program = await start(args);
  const code = await program.ended();
  return { code, output: program.output() };
}

/** The same while the platform keeps its answers back until the command has shown what is still to come. */
async function refreshWatched(left: string, ...args: string[]): Promise<{ code: number | null; output: string }> {
  await order({ kind: 'slow', ms: 3_600_000 });
  const program = await start(args);
  await program.printed(new RegExp(`^0 of ${left}`, 'm'));
  await relieve();
  world.simulator.state.timers.cancelAll();
  const code = await program.ended();
  return { code, output: program.output() };
}

/** A session whose notes are known here. */
async function knownSession(): Promise<SimulatedSession> {
  const session = newSession({ noteTemplateIds: [SOAP] });
  toEnd(session);
  await read(session, 1);
  await world.heardAll();
  await until('nothing is to be fetched any more', async () => {
    const { pending } = (await world.service.call('GET', '/v1/sessions/refreshes')).json<{ pending: number }>();
    return pending === 0;
  });
  return session;
}

/** Notes are generated anew, and no webhook tells. */
function regenerateUnheard(session: SimulatedSession): void {
  const { state } = world.simulator;
  state.settings = { ...state.settings, webhookDropRate: 1 };
  beginRegeneration(state, session, [SOAP]);
  takeStep(state, session);
  state.settings = { ...state.settings, webhookDropRate: 0 };
}

const order = (trouble: object) =>
  callSimulator(world.simulator, 'POST', '/_simulator/faults', [{ operation: 'getSession', ...trouble }]);
const relieve = () => callSimulator(world.simulator, 'DELETE', '/_simulator/faults');

const generationShown = async ({ sessionId }: SimulatedSession) =>
  /\(Generation (\d+)\.\)/.exec(texts(await notesOf(sessionId))[0] ?? '')?.[1];

test('--session fetches that one: its new notes are there when the command ends, and no other was asked for', async () => {
  const [one, other] = await Promise.all([knownSession(), knownSession()]);
  for (const session of [one, other]) regenerateUnheard(session);
  const before = world.fetches();
  const { code, output } = await refresh('--session', (await show(one.sessionId)).id);
  expect([code, output]).toEqual([0, expect.stringMatching(/^1 session to be fetched\n[\s\S]*^All were fetched\.$/m)]);
  expect([await generationShown(one), await generationShown(other), world.fetches() - before]).toEqual(['2', '1', 1]);
});

test('--since fetches all that changed since, and shows how far it is', async () => {
  const sessions = await Promise.all([knownSession(), knownSession(), knownSession()]);
  for (const session of sessions) regenerateUnheard(session);
  const count = world.simulator.state.sessions.list().length;
  const { code, output } = await refreshWatched(`${count} sessions`, '--since', '2026-01-31');
  expect([code, output]).toEqual([0, expect.stringContaining(`${count} sessions to be fetched`)]);
  expect(await Promise.all(sessions.map(generationShown))).toEqual(['2', '2', '2']);
});

test('--session tells of that one alone, whatever else waits or can not be fetched', async () => {
  const [one, failing, waiting] = await Promise.all([knownSession(), knownSession(), knownSession()]);
  const want = `UPDATE sessions SET wanted_generation = fetched_generation + 1, due_at = now() + interval '1 hour'`;
  await world.sql(`${want}, fault = 'unreachable', failures = 1 WHERE session_id = $1`, [failing.sessionId]);
  await world.sql(`${want} WHERE session_id = $1`, [waiting.sessionId]);
  const { code, output } = await refresh('--session', one.sessionId);
  await world.sql('UPDATE sessions SET due_at = NULL WHERE session_id = ANY ($1)', [
    [failing.sessionId, waiting.sessionId],
  ]);
  expect([code, output]).toEqual([0, expect.stringContaining('All were fetched.')]);
});

test('nothing that changed since: nothing to fetch', async () => {
  const before = world.fetches();
  expect(await refresh('--since', '2999-01-01')).toEqual({ code: 0, output: '0 sessions to be fetched\n' });
  expect(world.fetches()).toBe(before);
});

test('a fetch that fails ends it with 2, and the next command that succeeds with 0', async () => {
  const session = await knownSession();
  regenerateUnheard(session);
  await order({ kind: 'status', status: 500 });
  const failed = await refresh('--session', session.sessionId);
  await relieve();
  expect([failed.code, failed.output]).toEqual([2, expect.stringContaining('1 session could not be fetched')]);
  const again = await refreshWatched('1 session', '--session', session.sessionId);
  expect([again.code, await generationShown(session)]).toEqual([0, '2']);
});

test.each([
  [[], /--since or --session/],
  [['--since', '2026-01-31', '--session', 'x'], /cannot be used with/],
  [['--since', '2026-02-31'], /must be a date/],
  [['--session', 'nobody-knows-it'], /No session|not known|unknown/i],
])('refresh %j ends with 1 and says why', async (args, why) => {
  const { code, output } = await refresh(...args);
  expect([code, output]).toEqual([1, expect.stringMatching(why)]);
});
