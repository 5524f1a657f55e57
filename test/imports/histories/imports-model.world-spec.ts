import fc from 'fast-check';
import { propertyRuns } from '../../../src/config/property-runs.spec-support.js';
import { useWorld } from '../../world/use-world.js';
import type { Key } from './model-files.js';
import { anyCommand, type Command, History } from './model-history.js';
import { checkAlways, checkEnd } from './model-laws.js';

const world = useWorld();

afterEach(() => jest.restoreAllMocks());

const put = (key: Key): Command => ({ do: 'put', key, name: 0, providers: ['p-1'] });

/** Without a provider, no client could be created. */
const PROVIDERS = [put('provider/p-1'), put('provider/p-2')];
const MIRRORED = [...PROVIDERS, put('client/c-1'), put('client/c-3'), { do: 'settle' } satisfies Command];

async function happen(beginning: readonly Command[], commands: readonly Command[]): Promise<void> {
  await world.reset();
  jest.restoreAllMocks();
  const history = new History(world);
  for (const command of [...beginning, ...commands]) {
    await history.do(command);
    if (command.do === 'settle') await checkAlways(world, history);
  }
  await history.end();
  await checkEnd(world, history);
}

/** How long new histories may begin, even to shrink a failure, because Jest stops a test after 60 s. */
const ENOUGH_MS = 45_000;

describe.each([
  ['no client exists', PROVIDERS],
  ['some clients are mirrored', MIRRORED],
])('when %s', (_, beginning) => {
  test('imports, PUTs and deletes in any order leave everyone as the EHR said last', async () => {
    const endsAt = performance.now() + ENOUGH_MS;
    await fc.assert(
      fc.asyncProperty(fc.array(anyCommand, { minLength: 3, maxLength: 14 }), async (commands) => {
        if (performance.now() < endsAt) await happen(beginning, commands);
      }),
      propertyRuns(0.1),
    );
  });
});
