import net from 'node:net';
import type { Service } from '../harness/service.js';
import { describeOnBothBackends } from './support/backends.js';
import { dumpOf } from './support/database-dump.js';
import { useMirrors } from './support/service.js';

/** Words that stand for somebody: long and odd enough to be found only where they leaked. */
const PEOPLE = Array.from({ length: 12 }, (_, n) => ({
  firstName: `Vornamina${n}x`,
  lastName: `Nachnamowitsch${n}x`,
  email: `geheim.adresse${n}x@privat-${n}.example.org`,
}));
const SECRETS = PEOPLE.flatMap(({ firstName, lastName, email }) => [
  firstName,
  lastName,
  email,
  email.split('@')[0] ?? '',
]);

/** A text in every spelling in which it may have been kept. */
function spellings(secret: string): string[] {
  const bytes = Buffer.from(secret);
  // Base64 depends on where the text begins: of each of the three places, what the text alone decides.
  const inBase64 = [0, 1, 2].map((offset) => {
    const padded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    return padded.slice(offset === 0 ? 0 : offset + 1, Math.floor(((offset + bytes.length) * 8) / 6) - 1);
  });
  return [secret, secret.toLowerCase(), encodeURIComponent(secret), bytes.toString('hex'), ...inBase64];
}

function leaks(dump: string): string[] {
  const folded = dump.toLowerCase();
  return SECRETS.filter((secret) =>
    spellings(secret).some((spelling) => dump.includes(spelling) || folded.includes(spelling.toLowerCase())),
  );
}

describeOnBothBackends('after an import, changes and errors of every kind', (backend) => {
  const newMirror = useMirrors();
  let service: Service;
  let dump = '';

  beforeAll(async () => {
    // The call that is cut is looked up once it would have timed out.
    const shortly = { PLATFORM_TIMEOUT_SECONDS: '2', UNKNOWN_OUTCOME_GRACE_SECONDS: '0' };
    const mirror = await newMirror({ backend, env: { LOG_LEVEL: 'trace', ...shortly } });
    service = await mirror.start();
    mirror.trouble({ operation: 'createProvider', kind: 'status', status: 400, match: { partnerUserId: 'p-1' } });
    mirror.trouble({ operation: 'createProvider', kind: 'commit-then-cut', match: { partnerUserId: 'p-2' } });
    mirror.trouble({ operation: 'checkUser', kind: 'bad-json' });
    const line = (n: number, id: string, more = '') => {
      const { email, firstName, lastName } = PEOPLE[n] ?? { email: '', firstName: '', lastName: '' };
      return `${id},${email},${firstName},${lastName}${more}`;
    };
    const providers = [0, 1, 2, 3, 4, 5].map((n) => line(n, `p-${n}`));
    const clients = [line(6, 'c-6', ',p-0'), line(7, 'c-7', ',nobody'), line(8, 'c-6', ',p-0'), line(9, '', ',p-0')];
    const { id } = await service.startImport('kind=clients', [
      {
        name: 'providers.csv',
        type: 'text/csv',
        content: ['externalId,email,firstName,lastName', ...providers].join('\n'),
      },
      {
        name: 'clients.csv',
        type: 'text/csv',
        content: ['externalId,email,firstName,lastName,providers', ...clients].join('\n'),
      },
    ]);
    const ended = await service.importEnded(id);
    expect(ended.counts).toMatchObject({ failed: 1, rejected: 3 });
    await service.call('PUT', '/v1/providers/p-10', { body: PEOPLE[10], wait: 60 });
    await service.call('PUT', '/v1/providers/p-bad', { body: { ...PEOPLE[11], phone: PEOPLE[11]?.email } });
    await service.call('PUT', '/v1/providers/p-11', { body: { ...PEOPLE[11], email: 'no-email' } });
    await service.call('POST', '/v1/people/search', { body: { email: PEOPLE[3]?.email } });
    await service.call('DELETE', '/v1/clients/c-6', { wait: 60 });
    await service.call('GET', `/v1/providers/${encodeURIComponent(PEOPLE[9]?.email ?? '')}`);
    dump = await dumpOf(mirror.database.url);
  });

  test('the test itself would find a leak in any spelling', () => {
    const [secret = ''] = SECRETS;
    const holes = [secret, secret.toUpperCase(), Buffer.from(secret).toString('hex')].concat(
      ['', 'a', 'ab', 'abc'].map((before) => Buffer.from(`${before}${secret} and more`).toString('base64')),
    );
    for (const hole of holes) expect(leaks(`x ${hole} y`)).toContain(secret);
  });

  test('a dump of the database holds nobody’s name or email', () => {
    expect(dump.length).toBeGreaterThan(5_000);
    expect(leaks(dump)).toEqual([]);
  });

  test('neither does the log, down to its finest', () => {
    expect(service.output()).toContain('"level":"debug"');
    expect(leaks(service.output())).toEqual([]);
  });

  (backend.redisUrl ? test : test.skip)('neither does Redis', async () => {
    expect(leaks(await dumpOfRedis(backend.redisUrl ?? ''))).toEqual([]);
  });
});

/** Every key of a Redis and its value, as DUMP serialises it, uncompressed. */
async function dumpOfRedis(url: string): Promise<string> {
  const { hostname, port, pathname } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  const script = `local out = {} for _, key in ipairs(redis.call('KEYS', '*')) do
    out[#out + 1] = key .. ' ' .. (redis.call('DUMP', key) or '') end return out`;
  const words = ['EVAL', script, '0'].map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('');
  socket.write(`SELECT ${pathname.slice(1) || 0}\r\nCONFIG SET rdbcompression no\r\n*3\r\n${words}PING\r\n`);
  let answer = '';
  for await (const chunk of socket) {
    answer += (chunk as Buffer).toString('latin1');
    if (answer.endsWith('+PONG\r\n')) break;
  }
  expect(answer).toMatch(/^\+OK\r\n\+OK\r\n\*\d+/);
  return answer;
}
