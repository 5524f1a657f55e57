import { emptyTally } from './counts.js';
import type { Scenario } from './scenario.js';
import { table } from './table.js';

test('shows each run in a line, texts on the left and numbers on the right', () => {
  const scenario = { name: 'import' } as Scenario;
  const counts = { ...emptyTally(), kills: 50, calls: 1_234 };
  const rows = [
    {
      run: { scenario, seed: 1, share: 1, queue: 'postgres' as const },
      outcome: { counts, broken: ['a law'], seconds: 61.4 },
    },
  ];
  expect(table(rows).split('\n')).toEqual([
    'scenario  queues    kills  faults  starts  webhooks  calls  lost answers  requests  broken laws  seconds',
    'import    postgres     50       0       0         0   1234             0         0            1       61',
  ]);
});
