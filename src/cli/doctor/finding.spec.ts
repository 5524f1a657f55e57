import { faultOf, findingLines } from './finding.js';

test('advice stands below its finding', () => {
  const lines = findingLines('Disk', { state: 'faulty', what: '3 KiB free', advice: ['Make room.'] });
  expect(lines).toBe('✗ Disk       3 KiB free\n             Make room.');
});

test('an error of several lines is one finding with advice', () => {
  expect(faultOf(new Error('It is not usable:\n  A is not set\n  B is not set'))).toEqual({
    state: 'faulty',
    what: 'It is not usable:',
    advice: ['A is not set', 'B is not set'],
  });
});
