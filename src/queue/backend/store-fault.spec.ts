import { isRedisReply, namesCause, storeFault } from './store-fault.js';

const reply = (message: string) => Object.assign(new Error(message), { name: 'ReplyError' });

test.each([
  ["NOPERM User app has no permissions to run the 'evalsha' command", 'a command that the queues need'],
  ["ERR unknown command 'EVALSHA', with args beginning with: 'abc'", 'a command that the queues need'],
  ["READONLY You can't write against a read only replica. script: abc, on @user_script:12.", 'read-only replica'],
  ['UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)', 'read-only replica'],
  ["OOM command not allowed when used memory > 'maxmemory'. script: abc", 'out of memory'],
  ['MOVED 3999 127.0.0.1:6381', 'Redis Cluster'],
  ["CROSSSLOT Keys in request don't hash to the same slot", 'Redis Cluster'],
  ['WRONGPASS invalid username-password pair or user is disabled.', 'the user or the password'],
  ['ERR max number of clients reached', 'no free connection'],
  ['LOADING Redis is loading the dataset in memory', 'still loading'],
  ['BUSY Redis is busy running a script.', 'error BUSY'],
])('the reply "%s" is explained, and never as an unreachable Redis', (message, expected) => {
  expect(isRedisReply(reply(message))).toBe(true);
  expect(storeFault(reply(message), 'REDIS_URL')).toContain(expected);
  expect(storeFault(reply(message), 'REDIS_URL')).not.toContain('cannot be reached');
});

test.each([
  ['25006', 'read-only PostgreSQL'],
  ['53300', 'PostgreSQL refuses a statement of the queues (53300)'],
  ['ECONNREFUSED', 'PostgreSQL cannot be reached at DATABASE_URL.'],
  ['EPIPE', 'PostgreSQL cannot be reached at DATABASE_URL.'],
])('the code %s is explained', (code, expected) => {
  expect(storeFault(Object.assign(new Error('quotes a value'), { code }), 'DATABASE_URL')).toContain(expected);
});

test.each(['EPIPE', 'ECONNREFUSED', '53300'])('the code %s of a connection to Redis names Redis', (code) => {
  const error = Object.assign(new Error('quotes a value'), { code });
  expect(storeFault(error, 'REDIS_URL')).toBe('Redis cannot be reached at REDIS_URL.');
});

test('an explanation quotes no part of an error', () => {
  expect(storeFault(reply('ERR Miller'), 'REDIS_URL')).not.toContain('Miller');
  expect(storeFault(new Error('Miller'), 'REDIS_URL')).not.toContain('Miller');
});

test('only a reply, or an error with a code, names a cause', () => {
  expect(namesCause(reply('LOADING Redis is loading the dataset in memory'))).toBe(true);
  expect(namesCause(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }))).toBe(true);
  expect(namesCause(new Error('Connection is closed.'))).toBe(false);
});
