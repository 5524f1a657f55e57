import { refreshProgress } from './requests.command.js';

test.each([
  ['estimates nothing before the first session is done', [10, 10, 2], { done: 0, total: 10, etaSeconds: null }],
  ['estimates the rest at the pace so far', [10, 5, 5], { done: 5, etaSeconds: 5 }],
  ['does not become negative when further sessions come due', [10, 12, 5], { done: 0 }],
] as const)('%s', (_rule, [total, pending, seconds], progress) =>
  expect(refreshProgress(total, pending, seconds)).toMatchObject(progress),
);
