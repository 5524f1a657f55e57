import fc from 'fast-check';
import { propertyRuns } from '../../src/config/property-runs.spec-support.js';
import { peopleOf } from '../people/mirroring.js';
import { backUp, putBack } from '../support/restore.js';
import { useWorld } from '../world/use-world.js';
import { anyCommand, type Command, Ehr, type Outcome } from './restored-history.js';

const world = useWorld();

/** The progress of the service when sending is released: each step includes those before. */
const MOMENTS = ['sent', 'started', 'settled'] as const;

interface History {
  before: Command[];
  /** Between the backup and the restore. */
  after: Command[];
  /** Between the snapshot and the release. */
  held: Command[];
  release: (typeof MOMENTS)[number];
}

const anyHistory: fc.Arbitrary<History> = fc.record({
  before: fc.array(anyCommand, { maxLength: 8 }),
  after: fc.array(anyCommand, { minLength: 2, maxLength: 12 }),
  held: fc.array(anyCommand, { maxLength: 4 }),
  release: fc.constantFrom(...MOMENTS),
});

const commands = (...names: ('put' | 'delete')[]): Command[] =>
  names.flatMap((name) => [...[1, 4].map((who): Command => ({ do: name, who })), { do: 'settle' }]);

/** A client with an email and one without, who are deleted and created again after the backup. */
const CREATED_AGAIN: History = { before: commands('put'), after: commands('delete', 'put'), held: [], release: 'sent' };

const UNKNOWN = 'needs-review restored-unknown';
const RELEASE = { held: false, restored: true };

async function happen({ before, after, held, release }: History): Promise<void> {
  await world.reset();
  const ehr = new Ehr(world);
  const { put, remove } = peopleOf(world);
  for (const path of ['providers/home', 'clients/stays', 'clients/gone'])
    await put(path, { email: `${path.split('/')[1]}@example.org` });
  await remove('clients/gone'); // without a delete that succeeded, no 404 of a delete is believed
  for (const command of before) await ehr.do(command);
  const backup = await backUp(world.database.url);
  ehr.backedUp();
  for (const command of after) await ehr.do(command);

  await world.database.empty();
  await putBack(world.database.url, backup);
  await world.restart({ HOLD_SENDING: 'true' });
  await world.settle();
  await ehr.sendEverything();
  for (const command of held) await ehr.do(command);
  const reached = MOMENTS.indexOf(release);
  if (reached >= 1) await world.work.imports();
  if (reached >= 2) await world.settle();
  await world.restart();
  await world.call('PUT', '/v1/sending', { body: RELEASE });
  await world.settle();
  await ehr.sendAgain();
  await world.settle();
  await check(ehr, ({ human, verdict, isDangling }) =>
    isDangling ? human.wasDeleted : ['synced', UNKNOWN].includes(verdict),
  );
  await ehr.decide();
  await ehr.linkAgain();
  await check(ehr, ({ verdict, isDangling }) => verdict === 'synced' && !isDangling);
}

/** Checks that no one is on the platform twice, and that the outcome of everyone in the EHR is good. */
async function check(ehr: Ehr, isGood: (outcome: Outcome) => boolean): Promise<void> {
  expect(world.platform.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
  expect(ehr.humans.filter((human) => ehr.usersOf(human).length > 1)).toEqual([]);
  expect((await ehr.outcomes()).filter((outcome) => !isGood(outcome))).toEqual([]);
}

/** How long new histories may begin, even to shrink a failure, because Jest stops a test after two minutes. */
const ENOUGH_MS = 90_000;

test('after any history and a restore by the runbook, no one is on the platform twice', async () => {
  const endsAt = performance.now() + ENOUGH_MS;
  await fc.assert(
    fc.asyncProperty(anyHistory, async (history) => {
      if (performance.now() < endsAt) await happen(history);
    }),
    { ...propertyRuns(0.006), examples: [[CREATED_AGAIN]] },
  );
});
