import { refreshProgress } from './requests.command.js';

test.each([
  ['nothing is known before the first session is done', [10, 10, 2], { done: 0, total: 10, etaSeconds: null }],
  ['the rest takes as long as what is done did', [10, 5, 5], { done: 5, etaSeconds: 5 }],
  ['sessions that come due meanwhile never make it less than nothing', [10, 12, 5], { done: 0 }],
] as const)('%s', (_rule, [total, pending, seconds], progress) =>
  expect(refreshProgress(total, pending, seconds)).toMatchObject(progress),
);
