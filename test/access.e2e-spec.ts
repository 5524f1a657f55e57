import { randomBytes, randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import {
  Body,
  Controller,
  Get,
  Global,
  HttpCode,
  Injectable,
  Module,
  Param,
  Post,
  Put,
  Req,
  Res,
} from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { IsString } from 'class-validator';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { until } from '../harness/until.js';
import { Unaudited } from '../src/access/audit/audit.interceptor.js';
import { Audit } from '../src/access/audit/audit.js';
import { CreationId, Idempotent } from '../src/access/idempotency/idempotency.interceptor.js';
import { Caller, type Principal, Public, Scopes } from '../src/access/identity/scopes.js';
import { Database } from '../src/database/database.js';
import { FeedModule } from '../src/feed/feed.module.js';
import { Problem } from '../src/http/problem/problem.js';
import { RawContent, RouteOptions } from '../src/http/request/route-options.js';
import { UUID } from '../src/http/request/uuid-param.js';
import { type Health, HealthIndicator } from '../src/http/server/health-indicator.js';
import { OperationsModule } from '../src/operations/operations.module.js';
import { WorkerProcess } from '../src/queue/due-rows/worker-process.js';
import { Poller } from '../src/queue/notifier/poller.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { baseOf, startApp } from './support/start-app.js';

const ADMIN = 'the-first-administrator-key-of-all';

const FINGERPRINT = expect.stringMatching(/^[0-9a-f]{64}$/);

class ThingBody {
  @IsString()
  name!: string;

  @IsString()
  mood!: string;
}

/** What the handlers below were asked to do. */
const runs: string[] = [];
let letGo: () => void = () => {};
let partHealth: Health = { status: 'ok' };

@Injectable()
class Part {
  @HealthIndicator('part')
  health(): Health {
    return partHealth;
  }
}

@Controller('things')
class ThingsController {
  constructor(private readonly audit: Audit) {}

  @Get('open')
  @Public()
  open() {
    return { open: true };
  }

  @Get('mine')
  @Scopes('people:read')
  @Unaudited()
  mine(@Caller() caller: Principal) {
    return { id: caller.id, name: caller.name };
  }

  @Get('undeclared')
  undeclared() {
    return {};
  }

  @Get('awaited')
  @Scopes('people:read')
  async awaited() {
    runs.push('awaited');
    await new Promise<void>((resolve) => {
      letGo = resolve;
    });
    return { name: 'Jane Roe' };
  }

  @Get(':externalId/notes')
  @Scopes('people:read')
  notes(@Param('externalId') id: string) {
    this.audit.about('client', id);
    return { text: 'Jane Roe slept well' };
  }

  @Put(':externalId')
  @Scopes('people:write')
  put(@Param('externalId') id: string, @Body() body: ThingBody) {
    this.audit.about('client', id);
    if (body.mood === 'refused') throw new Problem(409, 'not-now', 'Not now.');
    return { name: body.name };
  }

  @Post()
  @Scopes('people:write')
  @Idempotent()
  async create(@Body() body: ThingBody, @CreationId() id: string, @Res({ passthrough: true }) reply: FastifyReply) {
    runs.push(id);
    if (body.mood === 'refused') throw new Problem(422, 'unknown-provider', 'No.');
    if (body.mood === 'broken') throw new Error('broken');
    if (body.mood === 'slow') {
      await new Promise<void>((resolve) => {
        letGo = resolve;
      });
    }
    reply.code(202).header('location', `/things/${id}`);
    this.audit.about('session', id);
    return { id, name: body.name, run: runs.length };
  }

  @Post('streams')
  @HttpCode(201)
  @Scopes('people:write')
  @RouteOptions({ body: 'stream' })
  @Idempotent()
  async stream(@RawContent() body: Readable, @Req() request: FastifyRequest, @Param() _: object) {
    let length = 0;
    if (request.isMultipart()) {
      for await (const part of request.parts())
        if (part.type === 'file') for await (const c of part.file) length += c.length;
    } else for await (const chunk of body) length += (chunk as Buffer).length;
    runs.push('stream');
    return { length, run: runs.length };
  }
}

@Global()
@Module({ providers: [Poller, WorkerProcess], exports: [Poller, WorkerProcess] })
class SweepModule {}

@Module({ imports: [OperationsModule], controllers: [ThingsController], providers: [Part] })
class ThingsModule {}

describe('access', () => {
  let database: TestDatabase;
  let app: NestFastifyApplication;
  let other: NestFastifyApplication;

  const start = async (ADMIN_API_KEY = ADMIN) =>
    (await startApp(database.url, { ADMIN_API_KEY }, (env) => [...baseOf(env), SweepModule, FeedModule, ThingsModule]))
      .app;

  beforeAll(async () => {
    database = await freshDatabase();
    app = await start();
    other = await start();
  });

  afterAll(async () => {
    await app?.close();
    await other?.close();
    await database?.drop();
  });

  /** Sends a request, and again while a slow machine's database is late for it, as a caller should. */
  const call = (method: string, path: string, options: CallOptions = {}) =>
    until('the request is answered for good', async () => {
      const answer = await callOnce(method, path, options);
      return ['database-unavailable', 'audit-unavailable'].includes(answer.problem) ? undefined : answer;
    });

  async function callOnce(method: string, path: string, options: CallOptions = {}) {
    const { key = ADMIN, body, headers, on = app } = options;
    const plain = body === undefined || body instanceof FormData || body instanceof Uint8Array;
    const response = await fetch((await on.getUrl()) + path, {
      method,
      headers: {
        ...(key && { authorization: `Bearer ${key}` }),
        ...(!plain && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: plain ? body : JSON.stringify(body),
    });
    const text = await response.text();
    const json = response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : undefined;
    return { status: response.status, headers: response.headers, text, json, problem: json?.type?.split(':').at(-1) };
  }

  async function makeKey(...scopes: string[]): Promise<{ id: string; key: string; prefix: string }> {
    const answer = await call('POST', '/v1/api-keys', { body: { name: 'a key', scopes } });
    expect(answer.status).toBe(201);
    return answer.json;
  }

  const sql = async (text: string, values: unknown[] = []) => (await app.get(Database).pool.query(text, values)).rows;

  describe('keys', () => {
    test.each([
      [{ key: '' }, 'Bearer realm="notebridge"'],
      [{ key: '', headers: { authorization: 'Basic eDp5' } }, 'Bearer realm="notebridge"'],
      [{ key: 'wrong' }, 'Bearer realm="notebridge", error="invalid_token"'],
      [{ key: `nb_${'A'.repeat(43)}` }, 'Bearer realm="notebridge", error="invalid_token"'],
      [{ key: `${ADMIN}x` }, 'Bearer realm="notebridge", error="invalid_token"'],
    ])('without a good key nobody comes in (%#)', async (options, challenge) => {
      const answer = await call('GET', '/things/mine', options);
      expect([answer.status, answer.problem]).toEqual([401, 'unauthenticated']);
      expect(answer.headers.get('www-authenticate')).toBe(challenge);
    });

    test('a public route is open, and one that says nothing is for administrators', async () => {
      expect((await call('GET', '/things/open', { key: '' })).json).toEqual({ open: true });
      const { key } = await makeKey('people:read', 'people:write');
      expect((await call('GET', '/things/undeclared', { key })).json.scope).toBe('admin');
      expect((await call('GET', '/things/undeclared')).status).toBe(200);
    });

    test('ADMIN_API_KEY may be switched off', async () => {
      const { key } = await makeKey('people:read');
      const on = await start('off');
      const statuses: number[] = [];
      for (const shown of [ADMIN, 'off', key])
        statuses.push((await call('GET', '/things/mine', { key: shown, on })).status);
      await on.close();
      expect(statuses).toEqual([401, 401, 200]);
    });

    test('ADMIN_API_KEY has every scope', async () => {
      expect((await call('GET', '/things/mine')).json).toEqual({ id: 'admin', name: 'admin' });
    });

    test('a key is shown once and kept as a hash', async () => {
      const { id, key, prefix } = await makeKey('people:read');
      expect((await call('GET', '/things/mine', { key })).json).toEqual({ id, name: 'a key' });
      const list = await call('GET', '/v1/api-keys?limit=200');
      expect(list.json.items.find((item: { id: string }) => item.id === id)).toMatchObject({ prefix, revokedAt: null });
      const kept = JSON.stringify([list.json, await sql('SELECT *, encode(hash, $1) FROM api_keys', ['escape'])]);
      expect(kept).not.toContain(key);
      expect(kept).toContain(prefix);
    });

    test('a key goes no further than its scopes, and the answer names the one it lacks', async () => {
      const { key } = await makeKey('people:read');
      const answer = await call('PUT', '/things/7', { key, body: { name: 'x', mood: 'good' } });
      expect([answer.status, answer.problem, answer.json.scope]).toEqual([403, 'forbidden-scope', 'people:write']);
      expect(answer.headers.get('www-authenticate')).toContain('insufficient_scope');
    });

    test('revoking works at once in every process, and is audited', async () => {
      const { id, key } = await makeKey('people:read');
      expect((await call('GET', '/things/mine', { key, on: other })).status).toBe(200);
      expect((await call('DELETE', `/v1/api-keys/${id}`)).status).toBe(204);
      expect((await call('DELETE', `/v1/api-keys/${id}`)).status).toBe(204);
      expect((await call('GET', '/things/mine', { key })).status).toBe(401);
      expect((await call('GET', '/things/mine', { key, on: other })).status).toBe(401);
      const { json } = await call(
        'GET',
        `/v1/audit?action=${encodeURIComponent('DELETE /v1/api-keys/:id')}&subject=${id}`,
      );
      expect(json.items[0]).toMatchObject({ keyId: 'admin', subjects: { 'api-key': [id] }, outcome: 'ok' });
    });

    test('a key is taken until it expires, and its last use is known', async () => {
      const { id, key } = await makeKey('people:read');
      const shown = async () =>
        (await call('GET', '/v1/api-keys?limit=200')).json.items.find((item: { id: string }) => item.id === id);
      expect(await shown()).toMatchObject({ expiresAt: null, lastUsedAt: null, rotatedTo: null });
      expect((await call('GET', '/things/mine', { key })).status).toBe(200);
      await until('its use is known', async () => (await shown()).lastUsedAt);
      await sql(`UPDATE api_keys SET expires_at = clock_timestamp() - interval '1 second' WHERE id = $1`, [id]);
      expect((await call('GET', '/things/mine', { key })).status).toBe(401);
      expect((await call('GET', '/things/mine', { key, on: other })).status).toBe(401);
    });

    test('a key is made with an expiry that is to come', async () => {
      const make = (expiresAt: string) =>
        call('POST', '/v1/api-keys', { body: { name: 'a key', scopes: ['imports'], expiresAt } });
      expect((await make('2099-12-31T00:00:00Z')).json.expiresAt).toBe('2099-12-31T00:00:00.000Z');
      const past = await make('2020-01-31');
      expect([past.status, past.problem, past.json.pointer]).toEqual([400, 'validation', '/expiresAt']);
    });

    test('a rotated key and its successor are both taken, until the overlap ends', async () => {
      const { id, key } = await makeKey('people:read');
      const rotate = (of: string, body: object = {}) => call('POST', `/v1/api-keys/${of}/rotate`, { body });
      const { status, json: successor } = await rotate(id);
      expect([status, successor]).toEqual([
        201,
        expect.objectContaining({ name: 'a key', scopes: ['people:read'], expiresAt: null }),
      ]);
      const statuses = async () => [
        (await call('GET', '/things/mine', { key })).status,
        (await call('GET', '/things/mine', { key: successor.key, on: other })).status,
      ];
      expect(await statuses()).toEqual([200, 200]);
      const [old] = await sql('SELECT rotated_to, expires_at > now() AS later FROM api_keys WHERE id = $1', [id]);
      expect(old).toEqual({ rotated_to: successor.id, later: true });
      const again = await rotate(id);
      expect([again.status, again.problem, again.json.rotatedTo]).toEqual([409, 'already-rotated', successor.id]);
      await sql('UPDATE api_keys SET expires_at = clock_timestamp() WHERE id = $1', [id]);
      expect(await statuses()).toEqual([401, 200]);
      expect((await rotate(id)).problem).toBe('api-key-ended');
      expect((await rotate(randomUUID())).problem).toBe('unknown-api-key');
      expect((await rotate(successor.id, { overlapSeconds: 31 * 86_400 })).json.pointer).toBe('/overlapSeconds');
      expect((await rotate(successor.id, { overlapSeconds: 0 })).status).toBe(201);
      expect(await statuses()).toEqual([401, 401]);
      const { json } = await call(
        'GET',
        `/v1/audit?action=${encodeURIComponent('POST /v1/api-keys/:id/rotate')}&subject=${successor.id}`,
      );
      expect(json.items).toHaveLength(2);
    });

    test('the successor of a key that expires lives as long as that was to live', async () => {
      const { id } = await makeKey('people:read');
      await sql(
        `UPDATE api_keys SET created_at = now() - interval '20 days', expires_at = now() + interval '10 days' WHERE id = $1`,
        [id],
      );
      const { json } = await call('POST', `/v1/api-keys/${id}/rotate`, { body: {} });
      const days = (Date.parse(json.expiresAt) - Date.parse(json.createdAt)) / 86_400_000;
      expect(Math.round(days)).toBe(30);
    });

    test('a key makes none, and rotates none, with scopes that it lacks itself; it may revoke any', async () => {
      const { key } = await makeKey('admin', 'people:read');
      const { id } = await makeKey('people:read', 'notes:read');
      const make = (...scopes: string[]) => call('POST', '/v1/api-keys', { key, body: { name: 'a key', scopes } });
      const refusals = [
        await make('people:read', 'notes:read', 'imports'),
        await call('POST', `/v1/api-keys/${id}/rotate`, { key, body: {} }),
      ];
      expect(refusals.map(({ status, problem, json }) => [status, problem, json.scopes])).toEqual([
        [403, 'scope-escalation', ['notes:read', 'imports']],
        [403, 'scope-escalation', ['notes:read']],
      ]);
      expect((await make('people:read', 'admin')).status).toBe(201);
      expect((await call('DELETE', `/v1/api-keys/${id}`, { key })).status).toBe(204);
    });

    test.each([
      ['revoked', (id: string) => call('DELETE', `/v1/api-keys/${id}`)],
      ['expired', (id: string) => sql('UPDATE api_keys SET expires_at = clock_timestamp() WHERE id = $1', [id])],
    ])('a read that waits while its key is %s is refused, in any process', async (_, end) => {
      const { id, key } = await makeKey('people:read');
      runs.length = 0;
      const awaited = call('GET', '/things/awaited', { key, headers: { prefer: 'wait=60' }, on: other });
      await until('the read waits', () => runs.length === 1);
      await end(id);
      letGo();
      const { status, problem } = await awaited;
      expect([status, problem]).toEqual([401, 'unauthenticated']);
    });

    test('a key that nobody made can not be revoked, and scopes that do not exist can not be given', async () => {
      expect((await call('DELETE', `/v1/api-keys/${randomUUID()}`)).problem).toBe('unknown-api-key');
      const answer = await call('POST', '/v1/api-keys', { body: { name: 'x', scopes: ['everything'] } });
      expect([answer.status, answer.json.pointer]).toEqual([400, '/scopes']);
    });

    test('keys are paged', async () => {
      await makeKey('imports');
      await makeKey('imports');
      const ids: string[] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page: { items: { id: string }[]; nextCursor: string | null } = (
          await call('GET', `/v1/api-keys?limit=2${cursor && `&cursor=${cursor}`}`)
        ).json;
        ids.push(...page.items.map((item) => item.id));
        cursor = page.nextCursor;
      }
      const rows = await sql('SELECT id FROM api_keys ORDER BY created_at, id');
      expect(ids).toEqual(rows.map((row) => row.id));
    });
  });

  describe('the audit trail', () => {
    test('every change is recorded with its route pattern, its ids and its outcome, and nothing else', async () => {
      const { id: keyId, key } = await makeKey('people:write', 'people:read');
      await call('PUT', '/things/mrn-1', { key, body: { name: 'Jane Roe', mood: 'good' } });
      await call('PUT', '/things/mrn-2', { key, body: { name: 'Jane Roe', mood: 'refused' } });
      await call('PUT', '/things/mrn-3', { key, body: { name: 7 } });
      await call('POST', '/things', { key, body: { name: 'Jane Roe', mood: 'good' } });
      await call('GET', '/things/mine', { key });
      await call('GET', '/things/mrn-4/notes', { key });
      await call('GET', '/things/undeclared', { key });
      const { items } = (await call('GET', `/v1/audit?keyId=${keyId}`)).json;
      expect(items.reverse()).toMatchObject([
        { action: 'PUT /things/:externalId', subjects: { client: ['mrn-1'] }, outcome: 'ok', keyName: 'a key' },
        { action: 'PUT /things/:externalId', subjects: { client: ['mrn-2'] }, outcome: 'not-now' },
        { action: 'PUT /things/:externalId', subjects: { path: [FINGERPRINT] }, outcome: 'validation' },
        { action: 'POST /things', subjects: { session: [runs.at(-1)] }, outcome: 'ok' },
        { action: 'GET /things/:externalId/notes', subjects: { client: ['mrn-4'] }, outcome: 'ok' },
        { action: 'GET /things/undeclared', subjects: {}, outcome: 'forbidden-scope' },
      ]);
      expect(items[0]).toMatchObject({ requestId: expect.stringMatching(UUID), source: '127.0.0.1', onBehalfOf: null });
      expect(JSON.stringify(await sql('SELECT * FROM audit_entries'))).not.toMatch(/jane/i);
    });

    test('it is read page by page, the newest first, and by subject', async () => {
      const first = (await call('GET', '/v1/audit?limit=2')).json;
      const second = (await call('GET', `/v1/audit?limit=2&cursor=${first.nextCursor}`)).json;
      const ids = [...first.items, ...second.items].map((item) => BigInt(item.id));
      expect(ids).toEqual([...ids].sort((a, b) => Number(b - a)));
      expect((await call('GET', '/v1/audit?subject=mrn-2')).json.items).toHaveLength(1);
      expect((await call('GET', '/v1/audit?cursor=bm8')).problem).toBe('bad-cursor');
    });
  });

  describe('Idempotency-Key', () => {
    const create = (idempotencyKey: string, body: object, options: CallOptions = {}) =>
      call('POST', '/things', { ...options, body, headers: { 'idempotency-key': idempotencyKey } });

    beforeEach(() => {
      runs.length = 0;
    });

    test('the same request again gets the first answer, whatever the order of its members', async () => {
      const key = randomUUID();
      const first = await create(key, { name: 'Jane Roe', mood: 'good' });
      const again = await create(key, { mood: 'good', name: 'Jane Roe' }, { on: other });
      expect([again.status, again.json, again.headers.get('location')]).toEqual([
        202,
        first.json,
        first.headers.get('location'),
      ]);
      expect([first.headers.get('idempotent-replayed'), again.headers.get('idempotent-replayed')]).toEqual([
        null,
        'true',
      ]);
      expect(runs).toEqual([first.json.id]);
    });

    test('answers are kept sealed, keys and requests as fingerprints', async () => {
      const key = `key-${randomUUID()}`;
      await create(key, { name: 'Jane Roe', mood: 'good' });
      const [row] = await sql('SELECT * FROM idempotency_records ORDER BY created_at DESC LIMIT 1');
      expect(row.body.length).toBeGreaterThan(20);
      const dump = await sql('SELECT r::text, encode(body, $1) AS body FROM idempotency_records r', ['escape']);
      expect(JSON.stringify(dump)).not.toMatch(/jane|things\?/i);
      expect(JSON.stringify(dump)).not.toContain(key);
    });

    test('another body under the same key is refused', async () => {
      const key = randomUUID();
      await create(key, { name: 'A', mood: 'good' });
      const answer = await create(key, { name: 'B', mood: 'good' });
      expect([answer.status, answer.problem]).toEqual([422, 'idempotency-key-reused']);
      expect(runs).toHaveLength(1);
    });

    test('keys of different callers have nothing to do with each other', async () => {
      const key = randomUUID();
      const caller = await makeKey('people:write');
      await create(key, { name: 'A', mood: 'good' });
      expect((await create(key, { name: 'B', mood: 'good' }, { key: caller.key })).status).toBe(202);
    });

    test('of many at once in two processes one runs', async () => {
      const key = randomUUID();
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, i) => create(key, { name: 'A', mood: 'good' }, { on: i % 2 ? app : other })),
      );
      expect(runs).toHaveLength(1);
      expect(answers.map((answer) => answer.status).filter((status) => status !== 202 && status !== 409)).toEqual([]);
    });

    test('while the first runs, another is told so', async () => {
      const key = randomUUID();
      const running = create(key, { name: 'A', mood: 'slow' });
      await until('it runs', () => runs.length === 1);
      const answer = await create(key, { name: 'A', mood: 'slow' });
      expect([answer.status, answer.problem, answer.headers.get('retry-after')]).toEqual([
        409,
        'idempotency-in-progress',
        '1',
      ]);
      expect((await create(key, { name: 'B', mood: 'slow' })).problem).toBe('idempotency-key-reused');
      letGo();
      expect((await running).status).toBe(202);
    });

    test('after a crash in the middle the next one runs, under the same creation id, and its answer is the one kept', async () => {
      const key = randomUUID();
      const crashed = create(key, { name: 'A', mood: 'slow' });
      await until('it runs', () => runs.length === 1);
      const letCrashedGo = letGo;
      // The token is another's: whoever runs on here does not renew the lease, as one that is no more.
      await sql(
        'UPDATE idempotency_records SET lease_until = now(), lease_token = gen_random_uuid() WHERE status IS NULL',
      );
      expect((await create(key, { name: 'B', mood: 'slow' })).problem).toBe('idempotency-key-reused');
      const second = create(key, { name: 'A', mood: 'slow' });
      await until('the second runs', () => runs.length === 2);
      letGo();
      expect((await second).json.run).toBe(2);
      letCrashedGo();
      await crashed;
      expect(runs[0]).toBe(runs[1]);
      expect((await create(key, { name: 'A', mood: 'slow' })).json).toEqual((await second).json);
    });

    test('the key of a process that was killed is free again within fifteen seconds', async () => {
      const running = create(randomUUID(), { name: 'A', mood: 'slow' });
      await until('it runs', () => runs.length === 1);
      const lease = await sql(
        `SELECT lease_until - now() < interval '15 seconds' AS "isShort" FROM idempotency_records WHERE status IS NULL`,
      );
      letGo();
      await running;
      expect(lease).toEqual([{ isShort: true }]);
    });

    test('what was refused had no effect: it may be mended under the same key', async () => {
      const key = randomUUID();
      expect((await create(key, { name: 'A' })).status).toBe(400);
      expect((await create(key, { name: 'A', mood: 'refused' })).status).toBe(422);
      expect((await create(key, { name: 'A', mood: 'good' })).status).toBe(202);
    });

    test('what broke may have had an effect: it runs again under the same creation id, with the same body only', async () => {
      const key = randomUUID();
      expect((await create(key, { name: 'A', mood: 'broken' })).status).toBe(500);
      expect((await create(key, { name: 'A', mood: 'good' })).problem).toBe('idempotency-key-reused');
      expect((await create(key, { name: 'A', mood: 'broken' })).status).toBe(500);
      expect(runs[0]).toBe(runs[1]);
    });

    test('after a day the key is free', async () => {
      const key = randomUUID();
      const first = await create(key, { name: 'A', mood: 'good' });
      await sql('UPDATE idempotency_records SET expires_at = now()');
      const later = await create(key, { name: 'B', mood: 'good' });
      expect(later.status).toBe(202);
      expect(later.json.id).not.toBe(first.json.id);
    });

    test.each(['x'.repeat(256), 'ü'])('a key that can not be used is refused: %.10s', async (key) => {
      const answer = await create(Buffer.from(key).toString('latin1'), { name: 'A', mood: 'good' });
      expect([answer.status, answer.problem]).toEqual([400, 'bad-idempotency-key']);
    });

    test('without a key everything runs', async () => {
      await call('POST', '/things', { body: { name: 'A', mood: 'good' } });
      await call('POST', '/things', { body: { name: 'A', mood: 'good' } });
      expect(new Set(runs).size).toBe(2);
    });

    test('a stream is compared by its content', async () => {
      const headers = { 'idempotency-key': randomUUID(), 'content-type': 'audio/wav' };
      const body = randomBytes(3_000_000);
      const send = (bytes: Buffer) => call('POST', '/things/streams', { headers, body: new Uint8Array(bytes) });
      const first = await send(body);
      expect(first.json).toEqual({ length: 3_000_000, run: 1 });
      expect((await send(body)).json).toEqual(first.json);
      expect((await send(Buffer.concat([body, body]))).problem).toBe('idempotency-key-reused');
      expect(runs).toHaveLength(1);
    });

    test('a form is compared by its content, not by its boundary', async () => {
      const headers = { 'idempotency-key': randomUUID() };
      const bytes = new Uint8Array(randomBytes(200_000));
      const form = (part: Uint8Array<ArrayBuffer>) => {
        const made = new FormData();
        made.append('file', new Blob([part]), 'a.pdf');
        return made;
      };
      const first = await call('POST', '/things/streams', { headers, body: form(bytes) });
      expect(first.json).toEqual({ length: 200_000, run: 1 });
      expect((await call('POST', '/things/streams', { headers, body: form(bytes) })).json).toEqual(first.json);
      const another = await call('POST', '/things/streams', { headers, body: form(bytes.slice(1)) });
      expect(another.problem).toBe('idempotency-key-reused');
    });
  });

  describe('operations', () => {
    afterEach(() => {
      partHealth = { status: 'ok' };
    });

    test('alive and ready need no key', async () => {
      expect((await call('GET', '/health/live', { key: '' })).json).toEqual({ status: 'ok' });
      const ready = await until('every part is well', async () => {
        const answer = await call('GET', '/health/ready', { key: '' });
        return answer.json.status === 'ok' ? answer : undefined;
      });
      expect([ready.status, ready.json]).toEqual([
        200,
        {
          status: 'ok',
          checks: {
            audit: { status: 'ok' },
            'audit-seals': { status: 'ok' },
            database: { status: 'ok', facts: { auditTrailProtected: false } },
            part: { status: 'ok' },
            platform: { status: 'ok' },
            vault: { status: 'ok' },
            worker: { status: 'ok' },
          },
        },
      ]);
    });

    test('a part that is not well degrades the service and no more', async () => {
      partHealth = { status: 'down', reason: 'The queue can not be reached.', facts: { waiting: 3 } };
      const ready = await call('GET', '/health/ready', { key: '' });
      expect([ready.status, ready.json.status, ready.json.checks.part]).toEqual([200, 'degraded', partHealth]);
    });

    test('every key may see what the service can do and what is missing for the rest', async () => {
      expect((await call('GET', '/v1/capabilities', { key: '' })).status).toBe(401);
      const answer = await call('GET', '/v1/capabilities', { key: (await makeKey('imports')).key });
      const recorder = answer.json.items.find((item: { name: string }) => item.name === 'recorder');
      expect(recorder).toEqual({ name: 'recorder', on: false, missing: ['PLATFORM_PARTNER_DOMAIN'] });
    });

    test('metrics need the scope operations and hold route patterns only', async () => {
      expect((await call('GET', '/metrics', { key: '' })).status).toBe(401);
      expect((await call('GET', '/metrics', { key: (await makeKey('people:read')).key })).status).toBe(403);
      const answer = await call('GET', '/metrics', { key: (await makeKey('operations')).key });
      expect(answer.headers.get('content-type')).toContain('text/plain');
      expect(answer.text).toContain('notebridge_http_request_seconds_count{method="PUT",route="/things/:externalId"');
      expect(answer.text).not.toContain('mrn-');
    });
  });

  describe('when the database is away', () => {
    test('health says so, and keys of the database get 503 with Retry-After', async () => {
      const pool = other.get(Database).pool;
      await pool.end();
      const ready = await call('GET', '/health/ready', { key: '', on: other });
      // 503 is the inbox's to say, which this application lacks.
      expect([ready.status, ready.json.checks.database.status]).toEqual([200, 'down']);
      const answer = await callOnce('GET', '/things/mine', { key: `nb_${'A'.repeat(43)}`, on: other });
      expect([answer.status, answer.problem, answer.headers.get('retry-after')]).toEqual([
        503,
        'database-unavailable',
        '5',
      ]);
    });
  });
});

interface CallOptions {
  key?: string;
  body?: unknown;
  headers?: Record<string, string>;
  on?: NestFastifyApplication;
}
