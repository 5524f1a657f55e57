import { preferredWait } from './waiting.js';

test.each([
  ['wait=10', 10],
  ['Wait = 10', 10],
  ['wait="7"', 7],
  ['respond-async, wait=10', 10],
  ['respond-async;x=1, wait=10; foo="bar"', 10],
  ['wait=0', 0],
  ['wait=61', 60],
  ['wait=999999999', 60],
  ['wait=3, wait=9', 3],
  ['wait=soon, wait=9', 9],
  [' wait = " 7 " ; x', 7],
  [`wait=${' '.repeat(100_000)}5`, 5],
])('the wait preference of %j is %d seconds', (header, seconds) => {
  expect(preferredWait(header)).toBe(seconds);
});

test.each([
  undefined,
  '',
  'wait',
  'wait=',
  'wait=-1',
  'wait=1.5',
  'wait=soon',
  'wait5',
  'wait=5x',
  'await=5',
  'return=minimal',
])('ignores a preference that it cannot parse: %j', (header) => {
  expect(preferredWait(header)).toBeUndefined();
});

test('several Prefer headers count as one', () => {
  expect(preferredWait(['respond-async', 'wait=4'])).toBe(4);
});
