import { faultOf, findingLines } from './finding.js';

test('prints advice below its finding', () => {
  const lines = findingLines('Disk', { state: 'faulty', what: '3 KiB free', advice: ['Free some space.'] });
  expect(lines).toBe('✗ Disk       3 KiB free\n             Free some space.');
});

test('an error of several lines becomes one finding with advice', () => {
  expect(faultOf(new Error('It is not usable:\n  A is not set\n  B is not set'))).toEqual({
    state: 'faulty',
    what: 'It is not usable:',
    advice: ['A is not set', 'B is not set'],
  });
});
