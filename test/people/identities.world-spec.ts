import fc from 'fast-check';
import { propertyRuns } from '../../src/config/property-runs.spec-support.js';
import { useWorld } from '../world/use-world.js';
import { anyCommand, type Command, IdentityHistory } from './identity-history.js';

const world = useWorld();

/** How long new histories may begin, even to shrink a failure, because Jest stops a test after 60 s. */
const ENOUGH_MS = 45_000;

const put = (who: number): Command => ({ do: 'put', who, by: 'current' });
const EVERYONE = Array.from({ length: 10 }, (_, who) => put(who));

async function happen(commands: readonly Command[]): Promise<string[]> {
  await world.reset();
  const history = new IdentityHistory(world);
  for (const command of commands) await history.do(command);
  return history.end();
}

describe.each<[string, Command[]]>([
  ['no client is known', [put(0), { do: 'settle' }]],
  ['everyone is mirrored', [...EVERYONE, { do: 'settle' }]],
  ['everyone is being mirrored', EVERYONE],
])('when %s', (_, beginning) => {
  test('every history of renames, merges, requests, imports and events leaves each id and each user with one person', async () => {
    const endsAt = performance.now() + ENOUGH_MS;
    await fc.assert(
      fc.asyncProperty(fc.array(anyCommand, { minLength: 5, maxLength: 40, size: 'max' }), async (commands) => {
        if (performance.now() > endsAt) return;
        expect(await happen([...beginning, ...commands])).toEqual([]);
      }),
      propertyRuns(0.016),
    );
  });
});
