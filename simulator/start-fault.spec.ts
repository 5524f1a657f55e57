import { startFault } from './start-fault.js';

test.each([
  ['EADDRINUSE', 'listen EADDRINUSE 127.0.0.1:4010', 'SIMULATOR_PORT'],
  ['EACCES', 'listen EACCES 127.0.0.1:80', 'SIMULATOR_PORT'],
  ['EADDRNOTAVAIL', 'listen EADDRNOTAVAIL 10.9.9.9:4010', 'SIMULATOR_HOST'],
  ['ENOTFOUND', 'getaddrinfo ENOTFOUND nowhere.invalid', 'SIMULATOR_HOST'],
])('an address that can not be listened at (%s) names the setting to mend', (code, message, setting) => {
  expect(startFault(Object.assign(new Error(message), { code }))).toMatch(
    new RegExp(`^${message}; .*set ${setting} to .*\\.$`),
  );
});

test('another fault keeps its sentence', () => {
  expect(startFault(new Error('SIMULATOR_SEED must be a number, 0 or more.'))).toBe(
    'SIMULATOR_SEED must be a number, 0 or more.',
  );
});
