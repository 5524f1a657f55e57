import fc from 'fast-check';
import { propertyRuns } from '../../../src/config/property-runs.spec-support.js';
import { useWorld } from '../../world/use-world.js';
import { anyCommand, type Command, History, type Key } from './history.js';
import { faultsOf } from './laws.js';

const world = useWorld();

afterEach(() => jest.restoreAllMocks());

const put = (key: Key, email: 0 | 1 = 0): Command => ({ do: 'put', key, email, both: false });
const PROVIDERS = [put('providers/p-1'), put('providers/p-2')];
const SETTLED = { do: 'settle' } as const satisfies Command;

/** How long new histories may begin, even to shrink a failure, because Jest stops a test after 60 s. */
const ENOUGH_MS = 45_000;

async function happen(commands: readonly Command[]): Promise<string[]> {
  await world.reset();
  jest.restoreAllMocks();
  const history = new History(world, () => world.startAnother());
  for (const command of commands) await history.do(command);
  await history.end();
  return faultsOf(world, history);
}

describe.each([
  ['no one is mirrored', PROVIDERS],
  ['the providers are mirrored', [...PROVIDERS, SETTLED]],
  ['clients are being mirrored', [...PROVIDERS, SETTLED, put('clients/c-1'), put('clients/c-2')]],
  ['everyone is mirrored', [...PROVIDERS, put('clients/c-1'), put('clients/c-2'), put('clients/c-3'), SETTLED]],
])('when %s', (_, beginning) => {
  test('every history of requests, answers, crashes and two processes ends as the EHR said last', async () => {
    const endsAt = performance.now() + ENOUGH_MS;
    await fc.assert(
      fc.asyncProperty(fc.array(anyCommand, { minLength: 3, maxLength: 12 }), async (commands) => {
        if (performance.now() > endsAt) return;
        expect(await happen([...beginning, ...commands])).toEqual([]);
      }),
      propertyRuns(0.05),
    );
  });
});
