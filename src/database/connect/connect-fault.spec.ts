import { withConnectHint } from './connect-fault.js';

const told = (error: Error, setting: string): Promise<Error> =>
  withConnectHint(setting, () => Promise.reject(error)).then(
    () => new Error('nothing was thrown'),
    (fault: Error) => fault,
  );

const thrown = (code: string, message = 'connect failed for notebridge:secret') =>
  Object.assign(new Error(message), { code });

test.each([
  ['ECONNREFUSED', /cannot be reached \(ECONNREFUSED\)\. Check DATABASE_URL/],
  ['ENOTFOUND', /cannot be reached \(ENOTFOUND\)\. Check DATABASE_URL/],
  ['57P03', /cannot be reached \(57P03\)\. Check DATABASE_URL/],
  ['28P01', /rejects the user or the password in DATABASE_URL/],
  ['28000', /rejects the user in DATABASE_URL/],
  ['3D000', /database in DATABASE_URL does not exist/],
  ['25006', /accepts no writes from DATABASE_URL/],
  ['53100', /disk of PostgreSQL in DATABASE_URL is full/],
  ['53300', /no free connection for DATABASE_URL.*max_connections.*DATABASE_CONNECTIONS/],
  ['42501', /role in DATABASE_URL .* DATABASE_OWNER_URL/],
])('%s is explained in one sentence that names the setting and no secret', async (code, sentence) => {
  const { message } = await told(thrown(code), 'DATABASE_URL');
  expect(message).toMatch(sentence);
  expect(message).not.toMatch(/secret|\n/);
});

test.each([
  ['too many connections for role "r"', "the role's CONNECTION LIMIT"],
  ['too many connections for database "d"', "the database's CONNECTION LIMIT"],
  ['sorry, too many clients already', 'max_connections or'],
])('a server without a free connection (%s) names the limit', async (message, limit) => {
  expect((await told(thrown('53300', message), 'DATABASE_URL')).message).toContain(limit);
});

test.each(['timeout expired', 'timeout exceeded when trying to connect', 'Connection terminated unexpectedly'])(
  'a server that does not answer (%s) is explained, too',
  async (message) => {
    expect((await told(new Error(message), 'DATABASE_OWNER_URL')).message).toContain('Check DATABASE_OWNER_URL');
  },
);

test.each([thrown('42P01'), new Error('The migration x failed and was undone.')])(
  'an error with another cause is unchanged',
  async (fault) => expect(await told(fault, 'DATABASE_URL')).toBe(fault),
);
