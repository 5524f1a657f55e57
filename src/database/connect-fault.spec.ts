import { connectFault, explained } from './connect-fault.js';

const thrown = (code: string, message = 'connect failed for notebridge:secret') =>
  Object.assign(new Error(message), { code });

test.each([
  ['ECONNREFUSED', /can not be reached \(ECONNREFUSED\): check DATABASE_URL/],
  ['ENOTFOUND', /can not be reached \(ENOTFOUND\): check DATABASE_URL/],
  ['57P03', /can not be reached \(57P03\): check DATABASE_URL/],
  ['28P01', /refuses the user or the password of DATABASE_URL/],
  ['28000', /refuses the user of DATABASE_URL/],
  ['3D000', /database that DATABASE_URL names does not exist/],
  ['42501', /role of DATABASE_URL .* DATABASE_OWNER_URL/],
])('%s is told in one sentence that names the setting and no secret', (code, sentence) => {
  const told = connectFault(thrown(code), 'DATABASE_URL') ?? '';
  expect(told).toMatch(sentence);
  expect(told).not.toMatch(/secret|\n/);
});

test.each(['timeout expired', 'timeout exceeded when trying to connect', 'Connection terminated unexpectedly'])(
  'a server that does not answer (%s) is told likewise',
  (message) => {
    expect(connectFault(new Error(message), 'DATABASE_OWNER_URL')).toContain('check DATABASE_OWNER_URL');
  },
);

test('what is not about the connection stays what it is', async () => {
  expect(connectFault(thrown('42P01'), 'DATABASE_URL')).toBeUndefined();
  const fault = new Error('The migration x failed and was undone.');
  await expect(explained('DATABASE_URL', () => Promise.reject(fault))).rejects.toBe(fault);
});
