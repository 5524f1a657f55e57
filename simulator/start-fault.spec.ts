import { startFault } from './start-fault.js';

test.each([
  ['EADDRINUSE', 'listen EADDRINUSE 127.0.0.1:4010', 'SIMULATOR_PORT'],
  ['EACCES', 'listen EACCES 127.0.0.1:80', 'SIMULATOR_PORT'],
  ['EADDRNOTAVAIL', 'listen EADDRNOTAVAIL 10.9.9.9:4010', 'SIMULATOR_HOST'],
  ['ENOTFOUND', 'getaddrinfo ENOTFOUND nowhere.invalid', 'SIMULATOR_HOST'],
])('an address that cannot be used (%s): names the setting to fix', (code, message, setting) => {
  expect(startFault(Object.assign(new Error(message), { code }))).toMatch(
    new RegExp(`^${message}\\. .*[sS]et ${setting} to .*\\.$`),
  );
});

test('any other fault keeps its message', () => {
  expect(startFault(new Error('SIMULATOR_SEED must be a number of at least 0.'))).toBe(
    'SIMULATOR_SEED must be a number of at least 0.',
  );
});
