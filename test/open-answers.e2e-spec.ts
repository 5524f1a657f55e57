import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { NewApiKeyResponse } from '../src/access/keys/api-keys.dto.js';
import { ADMIN_KEY } from './support/app.js';
import { type Mirror, useMirrors } from './support/service.js';
import { answerTo } from './support/webhook-requests.js';

/** Rows of two kilobytes: more than fits between the service and a reader who does not read. */
const ROWS = 10_000;
const PADDING = `repeat('x', 2000)`;
const IMPORT = '00000000-0000-4000-8000-000000000001';

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;

beforeAll(async () => {
  mirror = await newMirror({ env: { PLATFORM_TIMEOUT_SECONDS: '60' } });
  service = await mirror.start();
  const name = { firstName: 'Ada', lastName: 'Osei' };
  await service.call('PUT', '/v1/providers/p-1', { body: { ...name, email: 'p-1@example.org' } });
  await service.call('PUT', '/v1/clients/c-1', { body: { ...name, providers: ['p-1'] } });
  await until(
    'both are mirrored',
    async () => (await service.call('GET', '/v1/clients/c-1')).body.sync.state === 'synced',
  );
  await mirror.sql(
    `INSERT INTO imports (id, kind, mode, dry_run, state, created_by)
     VALUES ($1, 'clients', 'upsert', true, 'failed', 'admin')`,
    [IMPORT],
  );
  await mirror.sql(
    `INSERT INTO import_rows (import_id, row_no, file, line, kind, outcome, code, hint)
     SELECT $1, n, 1, n, 'client', 'rejected', 'bad-email', ${PADDING} FROM generate_series(1, ${ROWS}) n`,
    [IMPORT],
  );
  await mirror.sql(
    `INSERT INTO audit_entries (key_id, key_name, action, outcome)
     SELECT 'admin', 'admin', 'x', ${PADDING} FROM generate_series(1, ${ROWS})`,
  );
  await mirror.sql(
    `INSERT INTO feed_events (type, subject, data, cursor)
     SELECT 'person.synced', 'clients/c-1', jsonb_build_object('n', ${PADDING}), 1000 + n FROM generate_series(1, ${ROWS}) n`,
  );
});

const ask = (method: string, path: string, headers: Record<string, string>) =>
  answerTo(`${service.url}${path}`, { method, headers });

const bearer = { authorization: `Bearer ${ADMIN_KEY}` };

async function newKey(): Promise<NewApiKeyResponse> {
  const scopes = ['admin', 'events:read', 'imports', 'notes:read', 'operations', 'people:read', 'sessions:read'];
  return (await service.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body: { name: 'k', scopes } })).body;
}

/** What somebody shows with each request, and what ends his right to be answered. */
interface Caller {
  headers: Record<string, string>;
  end(): Promise<unknown>;
}

async function withKey(end: (id: string) => Promise<unknown>): Promise<Caller> {
  const { id, key } = await newKey();
  return { headers: { authorization: `Bearer ${key}` }, end: () => end(id) };
}

async function withSession(end: (caller: Record<string, string>, id: string) => Promise<unknown>): Promise<Caller> {
  const { id, key } = await newKey();
  const answer = await ask('POST', '/v1/browser-session', { authorization: `Bearer ${key}` });
  const { csrfToken } = (await answer.json()) as { csrfToken: string };
  const headers = { cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '' };
  return { headers, end: () => end({ ...headers, 'x-csrf-token': csrfToken }, id) };
}

const revoke = async (id: string) => expect((await ask('DELETE', `/v1/api-keys/${id}`, bearer)).status).toBe(204);

const ENDS: [string, () => Promise<Caller>][] = [
  ['its key was revoked', () => withKey(revoke)],
  ['its key expired', () => withKey((id) => mirror.sql('UPDATE api_keys SET expires_at = now() WHERE id = $1', [id]))],
  ['the key of its session was revoked', () => withSession((_, id) => revoke(id))],
  [
    'its session was closed',
    () => withSession(async (caller) => expect((await ask('DELETE', '/v1/browser-session', caller)).status).toBe(204)),
  ],
  ['its session expired', () => withSession(() => mirror.sql('UPDATE browser_sessions SET expires_at = now()'))],
];

const tell = (subject: string) =>
  mirror.sql(`INSERT INTO feed_events (type, subject, data) VALUES ('person.synced', $1, '{}')`, [subject]);

const EXPORTS: [string, string, string][] = [
  ['the audit trail', '/v1/audit', 'application/x-ndjson'],
  ['rejected rows', `/v1/imports/${IMPORT}/rejected.csv`, 'text/csv'],
  ['a client', '/v1/clients/c-1/export', 'application/json'],
];

describe.each(ENDS)('what is sent when %s', (reason, comeIn) => {
  it.each(EXPORTS)('of an export of %s breaks off', async (_, path, accept) => {
    const { headers, end } = await comeIn();
    const { status, body } = await ask('GET', path, { ...headers, accept });
    expect(status).toBe(200);
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await end();
    await expect(readAll(reader)).rejects.toThrow('terminated');
  });

  it('as events, or to a read that waited, ends at once, and holds nothing that came afterwards', async () => {
    const { headers, end } = await comeIn();
    // Of this case alone: an event of the case before may get its cursor only now.
    const [before, afterwards] = [`clients/before ${reason}`, `clients/after ${reason}`];
    const open = async (path: string) => {
      const { body } = await ask('GET', path, { ...headers, accept: 'text/event-stream' });
      const stream = { received: '', ended: Promise.resolve('') };
      const read = async () => {
        for await (const chunk of body ?? []) stream.received += Buffer.from(chunk).toString();
        return 'whole';
      };
      stream.ended = read().catch((error: Error) => error.message);
      return stream;
    };
    const newest = async () =>
      (await mirror.sql<{ cursor: string }>('SELECT max(cursor) AS cursor FROM feed_events'))[0]?.cursor;
    const [busy, idle] = [await open(`/v1/events?after=${await newest()}`), await open('/v1/events?after=999999999')];
    await tell(before);
    await until('the stream is open', () => busy.received.includes(before));
    const waited = ask('GET', `/v1/events?after=${await newest()}`, { ...headers, prefer: 'wait=60' });
    await end();
    await tell(afterwards);
    expect(await Promise.all([busy.ended, idle.ended])).toEqual(['terminated', 'terminated']);
    expect(busy.received).not.toContain(afterwards);
    expect((await waited).status).toBe(401);
  });
});

async function readAll(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}
