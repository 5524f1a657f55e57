import fc from 'fast-check';
import { propertyRuns } from '../src/config/property-runs.spec-support.js';
import { readOptions, replayCommand } from './options.js';
import { inLanes, planRuns } from './plan.js';
import type { Scenario } from './scenario.js';

const { seed } = propertyRuns();
const NAMES = ['one', 'two', 'three'];
const scenarios = NAMES.map(
  (name, at): Scenario => ({ name, says: name, minutes: at + 1, needsRedis: name === 'three', run: async () => {} }),
);
const read = (...words: string[]) => readOptions(words, NAMES, 7);

describe('the options of a fault run', () => {
  test('are read in any order, with a default seed', () => {
    expect(read()).toEqual({ only: [], seed: 7, atOnce: 1 });
    expect(read('--minutes', '2.5', '--only', 'two,one', '--seed', '12', '--queue', 'redis', '--at-once', '2')).toEqual(
      {
        only: ['two', 'one'],
        seed: 12,
        minutes: 2.5,
        queue: 'redis',
        atOnce: 2,
      },
    );
  });

  test.each([
    [['--minuts', '3'], /^Unknown argument --minuts\. Usage:\nnpm run faults/],
    [['--minutes', 'many'], /^--minutes cannot be many\./],
    [['--minutes', '0'], /^--minutes cannot be 0\./],
    [['--share', '2'], /^--share cannot be 2\./],
    [['--seed'], /^--seed cannot be empty\./],
    [['--queue', 'kafka'], /^--queue cannot be kafka\./],
    [['--at-once', '0'], /^--at-once cannot be 0\./],
    [['__proto__', 'x'], /^Unknown argument __proto__\./],
    [['--only', 'four'], /^Unknown scenario four\. The scenarios are: one, two, three\.$/],
  ])('%j are rejected with a reason', (words, sentence) => {
    expect(() => read(...words)).toThrow(sentence);
  });
});

describe('the plan of a fault run', () => {
  test('runs everything without --minutes, and skips Redis if it is missing', () => {
    expect(planRuns(scenarios, read(), true).map(({ scenario, share }) => [scenario.name, share])).toEqual([
      ['one', 1],
      ['two', 1],
      ['three', 1],
    ]);
    const without = planRuns(scenarios, read(), false);
    expect(without.map(({ scenario, queue }) => [scenario.name, queue])).toEqual([
      ['one', 'postgres'],
      ['two', 'postgres'],
    ]);
  });

  test('runs a smaller share of each scenario in fewer minutes, in (0, 1]', () => {
    const shares = fc.double({ min: 0.1, max: 60, noNaN: true }).map((minutes) => {
      const [run] = planRuns(scenarios, { only: [], seed, minutes, atOnce: 1 }, true);
      return [minutes, run?.share ?? 0] as const;
    });
    fc.assert(
      fc.property(shares, shares, ([few, small], [many, large]) => {
        expect(small > 0 && small <= 1).toBe(true);
        if (few <= many) expect(small).toBeLessThanOrEqual(large);
      }),
      propertyRuns(),
    );
  });

  test('is repeated by the replay command: same seed, same share, same queues', () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 40 }), fc.boolean(), (base, minutes, hasRedis) => {
        for (const run of planRuns(scenarios, { only: [], seed: base, minutes, atOnce: 1 }, hasRedis)) {
          const command = replayCommand(run.scenario.name, base, run.share, run.queue);
          const words = command.replace('npm run faults -- ', '').split(' ');
          expect(planRuns(scenarios, readOptions(words, NAMES, 0), hasRedis)).toEqual([run]);
        }
      }),
      propertyRuns(),
    );
  });

  test('runs the given number of scenarios at a time, but a measuring one alone', async () => {
    const measuring = { name: 'measuring', says: '', minutes: 1, alone: true, run: async () => {} };
    const plan = planRuns([measuring, ...scenarios], read(), true);
    const running = new Set<string>();
    const together: string[] = [];
    await inLanes(plan, 2, async ({ scenario: { name } }) => {
      running.add(name);
      await new Promise(setImmediate);
      together.push([...running].sort().join('+'));
      await new Promise(setImmediate);
      running.delete(name);
    });
    expect(together).toEqual(['one+two', 'one+two', 'three', 'measuring']);
  });
});
