import { CallsRepository } from '../../../src/people/store/calls.repository.js';
import { DependentsRepository } from '../../../src/people/store/dependents.repository.js';
import { DuePeopleRepository } from '../../../src/people/store/due-people.repository.js';
import { PausesRepository } from '../../../src/platform/pauses/pauses.repository.js';
import { useWorld } from '../../world/use-world.js';
import { type Command, History, type Key } from './history.js';
import { faultsOf } from './laws.js';

const world = useWorld();

afterEach(() => jest.restoreAllMocks());

const put = (key: Key): Command => ({ do: 'put', key, email: 0, both: false });
const SETTLED: Command = { do: 'settle' };
const MIRRORED = [put('providers/p-1'), put('providers/p-2'), SETTLED];

/** The faults of a history whose service has a naive part all the time. */
async function faultsWith(naive: () => void, commands: readonly Command[]): Promise<string[]> {
  const history = new History(world, () => world.startAnother());
  naive();
  for (const command of commands) await history.do(command);
  await history.end(() => undefined);
  return faultsOf(world, history);
}

describe('the laws of the histories are broken by a service that', () => {
  test('forgets a create whose answer was lost', async () => {
    const rows = world.get(CallsRepository);
    const take = rows.take.bind(rows);
    const forget = async (...args: Parameters<typeof take>) => {
      const taken = await take(...args);
      await world.sql('UPDATE people SET unsettled_call = NULL');
      return taken;
    };
    const lost: Command = { do: 'fault', operation: 'createClient', fault: 'done, then cut', times: 1 };
    const commands = [...MIRRORED, { do: 'mute' } as const, lost, put('clients/c-2'), SETTLED];
    const faults = await faultsWith(() => jest.spyOn(rows, 'take').mockImplementation(forget), commands);
    expect(faults).toContain('clients/c-2 had two platform users');
  });

  test('ends the pause of a 429 with the next success', async () => {
    const pauses = world.get(PausesRepository);
    const save = pauses.save.bind(pauses);
    const limited: Command = { do: 'fault', operation: 'createClient', fault: '429', times: 1 };
    const faults = await faultsWith(
      () => jest.spyOn(pauses, 'save').mockImplementation((tx, pause) => save(tx, { ...pause, limitedUntil: null })),
      [...MIRRORED, limited, put('clients/c-2'), SETTLED, { do: 'wait', seconds: 1 }, put('clients/c-1'), SETTLED],
    );
    expect(faults.join()).toMatch(/arrived \d+ ms after a 429/);
  });

  test('wakes no one who waits', async () => {
    const dependents = world.get(DependentsRepository);
    const faults = await faultsWith(() => {
      for (const name of ['next', 'overlooked'] as const) jest.spyOn(dependents, name).mockResolvedValue([]);
    }, [put('providers/p-1'), put('clients/c-2'), SETTLED]);
    expect(faults.join()).toContain('clients/c-2 is waiting');
  });

  test('takes its queue for the truth', async () => {
    const due = world.get(DuePeopleRepository);
    const commands: Command[] = [put('providers/p-1'), { do: 'wipe' }, SETTLED];
    const faults = await faultsWith(() => jest.spyOn(due, 'round').mockResolvedValue([]), commands);
    expect(faults.join()).toContain('providers/p-1 is pending');
  });
});
