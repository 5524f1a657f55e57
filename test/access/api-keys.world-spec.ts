import { randomUUID } from 'node:crypto';
import { SCOPES } from '../../src/access/identity/scope.js';
import type { ApiKeyResponse } from '../../src/access/keys/api-keys.dto.js';
import { API_KEY_GRANTS, ApiKeysRepository } from '../../src/access/keys/api-keys.repository.js';
import { hashOf } from '../../src/access/keys/key-format.js';
import type { AuditPageResponse } from '../../src/audit/audit.dto.js';
import { renewMacs, rowsWithoutMac } from '../../src/cli/data/all-grants.js';
import { Clock } from '../../src/config/clock.js';
import { Env } from '../../src/config/env.js';
import { Database } from '../../src/database/database.js';
import type { Page } from '../../src/http/request/page.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { PeopleService } from '../../src/people/api/people.service.js';
import { KeyedHashes } from '../../src/vault/keyed-hashes.js';
import { parseKeys } from '../../src/vault/keys.js';
import { Macs } from '../../src/vault/macs.js';
import { ADMIN_KEY } from '../support/app.js';
import { useAccess } from './use-access.js';

const { world, ask, makeKey } = useAccess();

type NewKey = ApiKeyResponse & { key: string };

let reads = 0;
/** Reads with a key, each time from another address, because invalid keys are limited by address. */
const read = (key: string, on?: { url: string }) => {
  reads += 1;
  return ask('GET /v1/providers', { key, on, headers: { 'x-forwarded-for': `10.0.${reads >> 8}.${reads & 255}` } });
};
const shown = async (id: string) =>
  (await ask<Page<ApiKeyResponse>>('GET /v1/api-keys?limit=200')).body.items.find((key) => key.id === id);
const rotate = (id: string, body: object = {}, key?: string) =>
  ask<NewKey & { rotatedTo: string }>(`POST /v1/api-keys/${id}/rotate`, { body, key });
const inDays = (days: number) => new Date(world.now().getTime() + days * 86_400_000);
const grantsHealth = async () =>
  (await ask<HealthReport>('GET /health/ready')).body.checks.grants ?? { status: 'down' as const };
const auditOf = async (action: string, subject: string) =>
  (await ask<AuditPageResponse>(`GET /v1/audit?action=${encodeURIComponent(action)}&subject=${subject}`)).body.items;

describe('a request', () => {
  it.each([
    ['without a key', {}, ''],
    ['with another kind of authorization', { authorization: 'Basic eDp5' }, ''],
    ['with a malformed key', { authorization: 'Bearer wrong' }, ', error="invalid_token"'],
    ['with an unknown key', { authorization: `Bearer nb_${'A'.repeat(43)}` }, ', error="invalid_token"'],
    ['with more than the administrator’s key', { authorization: `Bearer ${ADMIN_KEY}x` }, ', error="invalid_token"'],
  ])('%s is rejected', async (_name, headers, challenge) => {
    const answer = await ask('GET /v1/capabilities', { key: null, headers });
    expect([answer.status, answer.problem]).toEqual([401, 'unauthenticated']);
    expect(answer.headers.get('www-authenticate')).toBe(`Bearer realm="notebridge"${challenge}`);
  });

  it('without the required scope is rejected, and the answer names it', async () => {
    const { key } = await makeKey(['people:read']);
    const answer = await ask('PUT /v1/providers/p-1', { key, body: {} });
    expect([answer.status, answer.problem, answer.body.scope]).toEqual([403, 'forbidden-scope', 'people:write']);
    expect(answer.headers.get('www-authenticate')).toContain('insufficient_scope');
  });

  it('with a key gets 503 and Retry-After while the database is unavailable', async () => {
    const { key } = await makeKey(['people:read']);
    const disconnected = Object.assign(new Error('terminating connection'), { code: '57P01' });
    jest.spyOn(world.get(Database).pool, 'query').mockImplementation(() => Promise.reject(disconnected));
    const answer = await read(key);
    expect([answer.status, answer.problem]).toEqual([503, 'database-unavailable']);
    expect(answer.headers.get('retry-after')).toBe('5');
  });
});

describe('the key of the administrator', () => {
  it('is rejected when ADMIN_API_KEY is off', async () => {
    const { key } = await makeKey(['people:read']);
    await world.restart({ ADMIN_API_KEY: 'off' });
    const statuses = [(await read(ADMIN_KEY)).status, (await read('off')).status, (await read(key)).status];
    expect(statuses).toEqual([401, 401, 200]);
  });
});

describe('an API key', () => {
  it('is shown once and stored as a hash', async () => {
    const { id, key, prefix } = await makeKey(['people:read']);
    expect(await shown(id)).toMatchObject({
      name: 'a key',
      prefix,
      revokedAt: null,
      lastUsedAt: null,
      rotatedTo: null,
    });
    const stored = JSON.stringify([await shown(id), await world.sql(`SELECT *, encode(hash, 'escape') FROM api_keys`)]);
    expect(stored).not.toContain(key);
    expect(stored).toContain(prefix);
  });

  it('shows when it was last used', async () => {
    const { id, key } = await makeKey(['people:read']);
    const uses = jest.spyOn(world.get(ApiKeysRepository), 'noteUse');
    expect((await read(key)).status).toBe(200);
    await Promise.all(uses.mock.results.map(({ value }) => value)); // the request does not wait for this write
    expect((await shown(id))?.lastUsedAt).not.toBeNull();
  });

  it('is rejected by every process once it is revoked, which is audited', async () => {
    const other = await world.startAnother();
    const { id, key } = await makeKey(['people:read']);
    expect((await read(key, other)).status).toBe(200);
    for (let times = 0; times < 2; times += 1) expect((await ask(`DELETE /v1/api-keys/${id}`)).status).toBe(204);
    expect([(await read(key)).status, (await read(key, other)).status]).toEqual([401, 401]);
    const entry = { keyId: 'admin', subjects: { 'api-key': [id] }, outcome: 'ok' };
    expect(await auditOf('DELETE /v1/api-keys/:id', id)).toMatchObject([entry, entry]);
    expect((await ask(`DELETE /v1/api-keys/${randomUUID()}`)).problem).toBe('unknown-api-key');
  });

  it('expires after a year by default', async () => {
    const { id } = await makeKey(['people:read']);
    expect((await shown(id))?.expiresAt).toBe(inDays(365).toISOString());
    expect((await shown((await makeKey(['people:read'], { expiresAt: null })).id))?.expiresAt).toBeNull();
  });

  it('is reported 30 days before it expires, and after 90 days without use', async () => {
    const { id, key } = await makeKey(['people:read']);
    await world.advance('90 d');
    expect([(await shown(id))?.warnings, (await grantsHealth()).facts]).toEqual([
      ['unused'],
      { altered: 0, expireWithin30Days: 0, unusedFor90Days: 1 },
    ]);
    await world.advance('245 d');
    expect((await read(key)).status).toBe(200);
    expect((await shown(id))?.warnings).toContain('expires-soon');
    expect(await grantsHealth()).toMatchObject({ status: 'degraded', reason: expect.stringContaining(id) });
    await rotate(id);
    expect((await grantsHealth()).status).toBe('ok');
  });

  it('is rejected once it expires by the clock of the database, whatever that of the process', async () => {
    const { key } = await makeKey(['people:read'], {
      expiresAt: new Date(world.now().getTime() + 60_000).toISOString(),
    });
    expect((await read(key)).status).toBe(200);
    await world.advance('1 min');
    jest.spyOn(world.get(Clock), 'now').mockReturnValue(inDays(-1));
    expect((await read(key)).status).toBe(401);
  });

  it.each([
    [{ scopes: ['imports'], expiresAt: '2020-01-31' }, '/expiresAt'],
    [{ scopes: ['everything'] }, '/scopes'],
    [{ scopes: ['imports'], name: 'system' }, '/name'],
    [{ scopes: ['imports'], name: 'ehr\u001b[2K' }, '/name'],
  ])('cannot be created from %j', async (body, pointer) => {
    const answer = await ask('POST /v1/api-keys', { body: { name: 'a key', ...body } });
    expect([answer.status, answer.problem, answer.body.pointer]).toEqual([400, 'validation', pointer]);
  });

  it('works alongside its successor until the overlap ends', async () => {
    const { id, key } = await makeKey(['people:read']);
    const { status, body: successor } = await rotate(id);
    expect([status, successor]).toMatchObject([201, { name: 'a key', scopes: ['people:read'] }]);
    const statuses = async () => [(await read(key)).status, (await read(successor.key)).status];
    expect(await statuses()).toEqual([200, 200]);
    const again = await rotate(id);
    expect([again.status, again.problem, again.body.rotatedTo]).toEqual([409, 'already-rotated', successor.id]);
    await world.advance('1 d');
    expect(await statuses()).toEqual([401, 200]);
    expect((await rotate(id)).problem).toBe('api-key-ended');
    expect((await rotate(randomUUID())).problem).toBe('unknown-api-key');
    expect((await rotate(successor.id, { overlapSeconds: 31 * 86_400 })).body.pointer).toBe('/overlapSeconds');
    expect((await rotate(successor.id, { overlapSeconds: 0 })).status).toBe(201);
    expect(await statuses()).toEqual([401, 401]);
    expect(await auditOf('POST /v1/api-keys/:id/rotate', successor.id)).toHaveLength(2);
  });

  it('has a successor with the same lifetime', async () => {
    const { id } = await makeKey(['people:read'], { expiresAt: inDays(30).toISOString() });
    await world.advance('20 d');
    const { expiresAt } = (await rotate(id)).body;
    expect(Math.abs(Number(new Date(expiresAt ?? 0)) - inDays(30).getTime())).toBeLessThan(60_000);
  });

  it('cannot create or rotate keys with scopes that it lacks, but can revoke any', async () => {
    const { key } = await makeKey(['admin', 'people:read']);
    const { id } = await makeKey(['people:read', 'notes:read']);
    const make = (...scopes: string[]) => ask('POST /v1/api-keys', { key, body: { name: 'a key', scopes } });
    const refusals = [await make('people:read', 'notes:read', 'imports'), await rotate(id, {}, key)];
    expect(refusals.map(({ status, problem, body }) => [status, problem, body.scopes])).toEqual([
      [403, 'scope-escalation', ['notes:read', 'imports']],
      [403, 'scope-escalation', ['notes:read']],
    ]);
    expect((await make('people:read', 'admin')).status).toBe(201);
    expect((await ask(`DELETE /v1/api-keys/${id}`, { key })).status).toBe(204);
  });

  it.each([
    ['is revoked', (id: string) => ask(`DELETE /v1/api-keys/${id}`)],
    ['expires', () => world.advance('1 min')],
  ])('gets 401 if it %s during a waiting read', async (_, end) => {
    const expiresAt = new Date(world.now().getTime() + 60_000).toISOString();
    const { id, key } = await makeKey(['people:read'], { expiresAt });
    let answer = () => {};
    const isWaiting = new Promise<void>((resolve) => {
      jest.spyOn(world.get(PeopleService), 'show').mockImplementationOnce(async () => {
        resolve();
        await new Promise<void>((go) => {
          answer = go;
        });
        return { firstName: 'Ada' } as never;
      });
    });
    const reading = ask('GET /v1/providers/p-1', { key, headers: { prefer: 'wait=60' } });
    await isWaiting;
    await end(id);
    answer();
    expect(await reading).toMatchObject({ status: 401, problem: 'unauthenticated' });
  });

  it('is listed page by page, oldest first', async () => {
    const made = [];
    for (let count = 0; count < 3; count += 1) {
      made.push((await makeKey(['imports'])).id);
      await world.advance('1 s');
    }
    const first = (await ask<Page<ApiKeyResponse>>('GET /v1/api-keys?limit=2')).body;
    const second = (await ask<Page<ApiKeyResponse>>(`GET /v1/api-keys?limit=2&cursor=${first.nextCursor}`)).body;
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(made);
    expect(second.nextCursor).toBeNull();
  });
});

describe('a row that this service did not write', () => {
  const FORGED = `nb_${'F'.repeat(43)}`;

  it('grants nothing, and is reported until it is revoked', async () => {
    const id = randomUUID();
    await world.sql(
      `INSERT INTO api_keys (id, name, prefix, hash, scopes, mac) SELECT $1, 'forged', 'nb_FFFFFF', $2, $3, mac
       FROM (SELECT NULL::bytea AS mac UNION ALL SELECT mac FROM api_keys) AS macs LIMIT 1`,
      [id, hashOf(FORGED), SCOPES],
    );
    expect((await read(FORGED)).status).toBe(401);
    expect((await shown(id))?.warnings).toEqual(['altered']);
    expect(await grantsHealth()).toMatchObject({ status: 'degraded', reason: expect.stringContaining(id) });
    expect((await rotate(id)).problem).toBe('api-key-ended');
    expect((await ask(`DELETE /v1/api-keys/${id}`)).status).toBe(204);
    expect([(await read(FORGED)).status, (await grantsHealth()).status]).toEqual([401, 'ok']);
  });

  it.each([
    ['revived', 'revoked_at = NULL'],
    ['widened', `scopes = '{people:read,notes:read}'`],
    ['extended', `expires_at = expires_at + interval '1 year'`],
    ['given another secret', `hash = sha256('nb_${'F'.repeat(43)}')`],
    ['renamed', `name = 'another key'`],
    ['given another id', 'id = gen_random_uuid()'],
    ['given the MAC of another', 'mac = (SELECT mac FROM api_keys o WHERE o.id <> api_keys.id)'],
  ])('%s: grants nothing', async (how, set) => {
    const { id, key } = await makeKey(['people:read']);
    await makeKey(SCOPES);
    if (how === 'revived') await ask(`DELETE /v1/api-keys/${id}`);
    await world.sql(`UPDATE api_keys SET ${set} WHERE id = $1`, [id]);
    expect([(await read(key)).status, (await read(FORGED)).status]).toEqual([401, 401]);
    expect(await rowsWithoutMac(world.get(Database).pool, world.get(Macs))).toMatchObject([{ table: 'api_keys' }]);
  });

  it('keeps its invalid MAC when a new key of AUDIT_KEYS renews those of the others', async () => {
    const { key } = await makeKey(['people:read']);
    const { id } = await makeKey(['people:read']);
    await world.sql(`UPDATE api_keys SET scopes = '{admin}' WHERE id = $1`, [id]);
    const { pool } = world.get(Database);
    const [first = ''] = world.get(Env).AUDIT_KEYS ?? [];
    const keys = parseKeys([`new:${Buffer.alloc(32, 7).toString('base64')}`, first]);
    expect(await renewMacs(pool, new Macs(new KeyedHashes(keys)), API_KEY_GRANTS)).toBe(1);
    expect((await read(key)).status).toBe(401);
    expect(await rowsWithoutMac(pool, new Macs(new KeyedHashes(keys.slice(0, 1))))).toEqual([
      { table: 'api_keys', id },
    ]);
  });
});
