import { refreshProgress } from './requests.command.js';

test.each([
  ['no estimate before the first session is done', [10, 10, 2], { done: 0, total: 10, etaSeconds: null }],
  ['the rest takes as long as the finished sessions did', [10, 5, 5], { done: 5, etaSeconds: 5 }],
  ['sessions that become due during the refresh never make it negative', [10, 12, 5], { done: 0 }],
] as const)('%s', (_rule, [total, pending, seconds], progress) =>
  expect(refreshProgress(total, pending, seconds)).toMatchObject(progress),
);
