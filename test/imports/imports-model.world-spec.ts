import fc from 'fast-check';
import { propertyRuns } from '../../src/config/property-runs.spec-support.js';
import { useWorld } from '../world/use-world.js';
import { PROVIDERS } from './model-files.js';
import { anyCommand, type Command, History } from './model-history.js';
import { checkAlways, checkEnd } from './model-laws.js';

const world = useWorld();

const DEV = {
  endOnFailure: process.env.NOSHRINK === '1',
  ...(process.env.RUNS && { numRuns: Number(process.env.RUNS) }),
  ...(process.env.SPATH && { path: process.env.SPATH }),
};
afterEach(() => jest.restoreAllMocks());

/** Without a provider, no client could be created. */
const BEGINNING = PROVIDERS.map((id): Command => ({ do: 'put', key: `provider/${id}`, name: 0, providers: [] }));

async function happen(commands: readonly Command[]): Promise<void> {
  const t0 = Date.now();
  await world.reset();
  const t1 = Date.now();
  jest.restoreAllMocks();
  const history = new History(world);
  for (const command of [...BEGINNING, ...commands]) {
    await history.do(command);
    if (command.do === 'settle') await checkAlways(world, history);
  }
  const t2 = Date.now();
  await history.end();
  const t3 = Date.now();
  await checkEnd(world, history);
  if (process.env.TIMES)
    process.stderr.write(
      `${commands.length} commands: reset ${t1 - t0} do ${t2 - t1} end ${t3 - t2} check ${Date.now() - t3}\n`,
    );
}

describe('imports, PUTs and deletes in any order', () => {
  test('leave everyone as the EHR said last', async () => {
    await fc.assert(fc.asyncProperty(fc.array(anyCommand, { minLength: 3, maxLength: 14 }), happen), {
      ...propertyRuns(0.01),
      ...DEV,
    });
  }, 590_000);
});
