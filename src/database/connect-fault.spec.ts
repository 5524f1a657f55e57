import { explained } from './connect-fault.js';

const told = (error: Error, setting: string): Promise<Error> =>
  explained(setting, () => Promise.reject(error)).then(
    () => new Error('nothing was thrown'),
    (fault: Error) => fault,
  );

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
])('%s is told in one sentence that names the setting and no secret', async (code, sentence) => {
  const { message } = await told(thrown(code), 'DATABASE_URL');
  expect(message).toMatch(sentence);
  expect(message).not.toMatch(/secret|\n/);
});

test.each(['timeout expired', 'timeout exceeded when trying to connect', 'Connection terminated unexpectedly'])(
  'a server that does not answer (%s) is told likewise',
  async (message) => {
    expect((await told(new Error(message), 'DATABASE_OWNER_URL')).message).toContain('check DATABASE_OWNER_URL');
  },
);

test.each([thrown('42P01'), new Error('The migration x failed and was undone.')])(
  'what is not about the connection stays what it is',
  async (fault) => expect(await told(fault, 'DATABASE_URL')).toBe(fault),
);
