import { emptyCounts } from './counts.js';
import type { Scenario } from './scenario.js';
import { table } from './table.js';

test('shows each run in a line, texts left-aligned and numbers right-aligned', () => {
  const scenario = { name: 'import' } as Scenario;
  const counts = { ...emptyCounts(), kills: 50, calls: 1_234 };
  const rows = [
    {
      run: { scenario, seed: 1, share: 1, queue: 'postgres' as const },
      outcome: { counts, broken: ['a invariant'], seconds: 61.4 },
    },
  ];
  expect(table(rows).split('\n')).toEqual([
    'scenario  queues    kills  faults  starts  webhooks  calls  lost answers  requests  violations  seconds',
    'import    postgres     50       0       0         0   1234             0         0           1       61',
  ]);
});
