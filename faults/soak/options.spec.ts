import { readOptions, replayCommand } from './options.js';

const CHOSEN = { seed: 7, queue: 'redis' } as const;
const read = (line: string) => readOptions(line.split(' ').filter(Boolean), CHOSEN);

test('a soak takes eight hours by default, and its command replays it', () => {
  expect(read('')).toEqual({ minutes: 480, seed: 7, queue: 'redis' });
  const asked = read('--hours 1.5 --seed 4 --queue postgres');
  expect(asked).toEqual({ minutes: 90, seed: 4, queue: 'postgres' });
  expect(replayCommand(asked)).toBe('npm run soak -- --minutes 90 --seed 4 --queue postgres');
});

test.each([
  ['--minutes 0', "--minutes can't be 0"],
  ['--hours 200', "--hours can't be 200"],
  ['--seed', "--seed can't be nothing"],
  ['--queue kafka', "--queue can't be kafka"],
  ['--toString 1', 'Unknown argument --toString'],
])('%s is refused', (line, message) => {
  expect(() => read(line)).toThrow(message);
});
