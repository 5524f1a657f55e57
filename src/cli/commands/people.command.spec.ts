import { waitSeconds } from './people.command.js';

test.each([
  ['0', 0],
  ['20', 20],
  ['60', 60],
])('%s seconds', (text, seconds) => {
  expect(waitSeconds(text)).toBe(seconds);
});

test.each(['abc', '', '-1', '61', '1.5', '1e1', ' 5', 'Infinity'])('%j is refused with what is allowed', (text) => {
  expect(() => waitSeconds(text)).toThrow('Say whole seconds, 0 to 60.');
});
