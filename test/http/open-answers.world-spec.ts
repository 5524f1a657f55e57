import { StreamedAnswers } from '../../src/access/guard/streamed-answers.js';
import type { NewApiKeyResponse } from '../../src/access/keys/api-keys.dto.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import { Feed } from '../../src/feed/feed.js';
import { FeedReader } from '../../src/feed/feed-reader.js';
import { nextCall } from '../world/next-call.js';
import { useWorld } from '../world/use-world.js';

/** Rows of 8 kB, so that an export does not fit into the buffers between the service and a reader that does not read. */
const ROWS = 2_000;
const PADDING = `repeat('x', 8000)`;
const IMPORT = '00000000-0000-4000-8000-000000000001';

const EXPORTS = {
  '/v1/audit': 'application/x-ndjson',
  [`/v1/imports/${IMPORT}/rejected.csv`]: 'text/csv',
  '/v1/clients/c-1/export': 'application/json',
};

const world = useWorld();

/** A caller's headers, and what ends its right to be answered. */
interface Caller {
  readonly headers: Record<string, string>;
  end(): Promise<unknown>;
}

const ask = (method: string, path: string, headers: Record<string, string>) =>
  fetch(`${world.url}${path}`, { method, headers });

async function newKey(expiresAt?: Date): Promise<NewApiKeyResponse & Pick<Caller, 'headers'>> {
  const scopes = ['admin', 'events:read', 'imports', 'notes:read', 'operations', 'people:read', 'sessions:read'];
  const body = { name: 'k', scopes, expiresAt };
  const answer = await world.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body });
  return { ...answer.body, headers: { authorization: `Bearer ${answer.body.key}` } };
}

async function withKey(end: (id: string) => Promise<unknown>, expiresAt?: Date): Promise<Caller> {
  const { id, headers } = await newKey(expiresAt);
  return { headers, end: () => end(id) };
}

async function withSession(end: (headers: Record<string, string>, id: string) => Promise<unknown>): Promise<Caller> {
  const { id, headers: key } = await newKey();
  const answer = await ask('POST', '/v1/browser-session', key);
  const { csrfToken } = (await answer.json()) as { csrfToken: string };
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  const headers = { cookie, 'notebridge-purpose': 'TEST' };
  return { headers, end: () => end({ ...headers, 'x-csrf-token': csrfToken }, id) };
}

const revoke = async (id: string) => expect((await world.call('DELETE', `/v1/api-keys/${id}`)).status).toBe(204);
const inAnHour = () => new Date(world.now().getTime() + 3_600_000);

const ENDS: [string, () => Promise<Caller>][] = [
  ['its key is revoked', () => withKey(revoke)],
  ['its key expires', () => withKey(() => world.advance('1 h'), inAnHour())],
  ['the key of its session is revoked', () => withSession((_, id) => revoke(id))],
  [
    'its session is closed',
    () =>
      withSession(async (headers) => expect((await ask('DELETE', '/v1/browser-session', headers)).status).toBe(204)),
  ],
  ['its session expires', () => withSession(() => world.advance('8 h'))],
];

const tell = (subject: string) =>
  world
    .get(PrismaService)
    .transaction((tx) => world.get(Feed).append(tx, { type: 'person.synced', subject, data: {} }));

beforeEach(async () => {
  const name = { firstName: 'Ada', lastName: 'Osei' };
  await world.call('PUT', '/v1/providers/p-1', { body: { ...name, email: 'p-1@example.org' } });
  await world.call('PUT', '/v1/clients/c-1', { body: { ...name, providers: ['p-1'] } });
  await world.settle();
  await world.sql(
    `INSERT INTO imports (id, kind, mode, dry_run, state, opened_at, files)
     VALUES ($1, 'clients', 'upsert', true, 'failed', now(), '')`,
    [IMPORT],
  );
  await world.sql(
    `INSERT INTO import_rows (import_id, row_no, file, line, kind, says, outcome, code, hint)
       SELECT '${IMPORT}', n, 1, n, 'client', 'rejected', 'rejected', 'bad-email', ${PADDING} FROM generate_series(1, ${ROWS}) n;
     INSERT INTO audit_entries (uid, at, mac, key_id, key_name, action, outcome)
       SELECT gen_random_uuid(), now(), '', 'admin', 'admin', 'x', ${PADDING} FROM generate_series(1, ${ROWS});
     INSERT INTO feed_events (type, subject, data, cursor)
       SELECT 'person.synced', 'clients/c-1', jsonb_build_object('n', ${PADDING}), 3000 + n FROM generate_series(1, ${ROWS}) n`,
  );
});

test.each(ENDS)('open answers to a caller are cut when %s', async (_, comeIn) => {
  const { headers, end } = await comeIn();
  const readers = [];
  for (const [path, accept] of Object.entries(EXPORTS)) {
    const { status, body } = await ask('GET', path, { ...headers, accept });
    expect([path, status]).toEqual([path, 200]);
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    readers.push(reader);
  }
  const reads = nextCall(FeedReader.prototype, 'read');
  const waiting = ask('GET', '/v1/events?after=1-5000', { ...headers, prefer: 'wait=60' });
  await (await reads).returned;
  await end();
  await tell('clients/afterwards');
  expect((await waiting).status).toBe(401);
  await world.get(StreamedAnswers).cutEnded();
  for (const reader of readers) await expect(readAll(reader)).rejects.toThrow('terminated');
});

async function readAll(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}
