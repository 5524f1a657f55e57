import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { allChecks } from '../../src/cli/doctor/checks.js';
import { faultOf, findingLines } from '../../src/cli/doctor/finding.js';
import { validateEnv } from '../../src/config/env.validation.js';
import { createDatabase, freshDatabase, query, type TestDatabase } from '../support/databases.js';

const role = `doctor_${randomBytes(6).toString('hex')}`;
const folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-doctor-'));
const servers: net.Server[] = [];
let database: TestDatabase;
let empty: TestDatabase;
/** A port that programs of users cannot take. */
const closed = '127.0.0.1:2';

beforeAll(async () => {
  [database, empty] = await Promise.all([freshDatabase(), createDatabase(process.env.TEST_PG_URL ?? '')]);
  await query(empty, `CREATE ROLE ${role} LOGIN PASSWORD 'its-own-password'`);
  await query(empty, 'REVOKE CREATE ON SCHEMA public FROM PUBLIC');
});

afterAll(async () => {
  for (const server of servers) server.close();
  await Promise.all([database.drop(), empty.drop()]);
  const client = new pg.Client({ connectionString: process.env.TEST_PG_URL });
  await client.connect();
  await client.query(`DROP ROLE ${role}`).finally(() => client.end());
  rmSync(folder, { recursive: true });
});

async function listening(server: net.Server): Promise<string> {
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server with one answer. */
const answering = (status: number, body: string, headers: Record<string, string> = {}) =>
  listening(http.createServer((_, response) => response.writeHead(status, headers).end(body)));

function changed(url: string, change: Partial<Pick<URL, 'username' | 'password' | 'pathname' | 'host'>>): string {
  return Object.assign(new URL(url), change).toString();
}

function withOption(url: string, option: string): string {
  const address = new URL(url);
  address.searchParams.set('options', `-c ${option}`);
  return address.toString();
}

function file(name: string, text: string): string {
  const place = path.join(folder, name);
  writeFileSync(place, text);
  return place;
}

/** The doctor's output about one check. @param more replaces good settings; undefined removes one */
async function doctor(
  check: string,
  more: Record<string, string | undefined> = {},
  service = `http://${closed}`,
): Promise<string> {
  const raw = {
    PLATFORM_BASE_URL: `http://${closed}`,
    PLATFORM_API_KEY: 'a-key-of-the-platform',
    PLATFORM_WEBHOOK_SECRET: 'secret',
    PLATFORM_CONTRACT: 'simulator/contract.json',
    ADMIN_API_KEY: 'the-first-key-of-the-doctors-tests-0001',
    DATABASE_URL: database.url,
    DATA_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    FINGERPRINT_KEYS: `f1:${Buffer.alloc(32, 8).toString('base64')}`,
    AUDIT_KEYS: `a1:${Buffer.alloc(32, 9).toString('base64')}`,
    ...more,
  };
  const look = async () => allChecks(validateEnv(raw), service, 'npm start')[check]?.();
  const finding = await look().catch(faultOf);
  if (!finding) throw new Error(`there is no check ${check}`);
  return findingLines(check, finding);
}

type Row = [fault: string, doctor: () => Promise<string>, named: RegExp, remedy: RegExp];

test('a short webhook secret of the platform is a warning, not a fault', async () => {
  const platform = { PLATFORM_BASE_URL: 'https://platform.example', PLATFORM_API_KEY: randomBytes(24).toString('hex') };
  expect(await doctor('Secrets', { ...platform, PLATFORM_WEBHOOK_SECRET: randomBytes(11).toString('hex') })).toMatch(
    /^– Secrets +PLATFORM_WEBHOOK_SECRET is short or repetitive\. Ask the platform/,
  );
  expect(await doctor('Secrets', { ...platform, PLATFORM_WEBHOOK_SECRET: randomBytes(24).toString('hex') })).toMatch(
    /^✓/,
  );
  expect(await doctor('Secrets')).toMatch(/^✓/);
});

test.each<Row>([
  [
    'settings that are missing',
    () => doctor('Settings', { PLATFORM_API_KEY: undefined, ADMIN_API_KEY: undefined }),
    /✗.*not usable/,
    /PLATFORM_API_KEY is not set[\s\S]*ADMIN_API_KEY is not set/,
  ],
  [
    'a secret whose file is missing',
    () => doctor('Settings', { PLATFORM_API_KEY: undefined, PLATFORM_API_KEY_FILE: '/nowhere/key' }),
    /PLATFORM_API_KEY_FILE/,
    /fix these settings/,
  ],
  [
    'a wrong password',
    () => doctor('Database', { DATABASE_URL: changed(database.url, { password: 'wrong' }) }),
    /✗.*rejects the user or the password in DATABASE_URL \(28P01\)/,
    /Correct it/,
  ],
  [
    'a database that accepts no writes',
    () => doctor('Database', { DATABASE_URL: withOption(database.url, 'default_transaction_read_only=on') }),
    /✗.*accepts no writes/,
    /Name the primary/,
  ],
  [
    'commits that a crash can lose',
    () => doctor('Database', { DATABASE_URL: withOption(database.url, 'synchronous_commit=off') }),
    /✗.*synchronous_commit off/,
    /Set it to on/,
  ],
  [
    'migrations that are missing under a role that may not apply them',
    () => doctor('Database', { DATABASE_URL: ofRole(empty) }),
    /✗.*may not create tables in the schema public/,
    /run migrate with DATABASE_OWNER_URL/,
  ],
  [
    'a role without rights on the tables',
    () => doctor('Database', { DATABASE_URL: ofRole(database) }),
    /✗.*DATABASE_URL/,
    /DATABASE_OWNER_URL/,
  ],
  [
    'an owner without tables',
    () => doctor('Owner', { DATABASE_OWNER_URL: ofRole(database) }),
    /✗.*DATABASE_OWNER_URL does not own the tables/,
    /Name the role that owns the tables/,
  ],
  [
    'no data keys',
    () => doctor('Settings', { DATA_KEYS: undefined }),
    /✗.*not usable/,
    /DATA_KEYS is not set.*openssl rand -base64 32/,
  ],
  [
    'a missing key that stored data needs',
    async () => {
      await query(database, `INSERT INTO key_uses (setting, id, check_hash) VALUES ('FINGERPRINT_KEYS', 'old', '')`);
      return doctor('Keys').finally(() => query(database, 'DELETE FROM key_uses'));
    },
    /✗.*FINGERPRINT_KEYS lacks the key old, which stored data needs/,
    /Set it to this key alone/,
  ],
  [
    'no key that can create keys',
    () => doctor('Access', { ADMIN_API_KEY: 'off' }),
    /✗.*off/,
    /set ADMIN_API_KEY again/,
  ],
  [
    'a Redis that is down',
    () => doctor('Queues', { REDIS_URL: `redis://${closed}` }),
    /✗.*Redis cannot be reached at REDIS_URL/,
    /Check REDIS_URL/,
  ],
  [
    'a missing contract',
    () => doctor('Contract', { PLATFORM_CONTRACT: '/nowhere/contract.json' }),
    /✗.*can't be read \(ENOENT\)/,
    /Name a readable JSON file/,
  ],
  [
    'a truncated contract',
    () => doctor('Contract', { PLATFORM_CONTRACT: file('cut.json', '{"apiKey":') }),
    /✗.*PLATFORM_CONTRACT .*cut\.json is invalid/,
    /line 1, column 11: value is expected/,
  ],
  [
    'no contract',
    () => doctor('Contract', { PLATFORM_CONTRACT: undefined }),
    /✗.*capabilities are on/,
    /user-mirroring is off, set .*apiKey\.header/,
  ],
  ['a platform that is down', () => doctor('Platform'), /✗.*does not answer \(ECONNREFUSED\)/, /PLATFORM_BASE_URL/],
  [
    'a proxy that rejects the password',
    async () => {
      const refusing = http.createServer().on('connect', (_, socket) => socket.end('HTTP/1.1 407 No\r\n\r\n'));
      const proxy = changed(await listening(refusing), { username: 'user', password: 'its-own-password' });
      return doctor('Platform', { PLATFORM_BASE_URL: 'https://platform.example', HTTPS_PROXY: proxy });
    },
    /✗.*the proxy 127\.0\.0\.1:\d+ in HTTPS_PROXY answers 407/,
    /Correct user and password in HTTPS_PROXY/,
  ],
  [
    'a clock that is wrong',
    async () => {
      const date = new Date(Date.now() + 3_600_000).toUTCString();
      return doctor('Platform', { PLATFORM_BASE_URL: await answering(200, '', { date }) });
    },
    /✗.*the clock of this machine is 3\d{3} s behind the platform's/,
    /Set the clock/,
  ],
  [
    'a port that another web server uses',
    async () => doctor('Service', {}, await answering(404, '<h1>Not found</h1>')),
    /✗.*a program other than notebridge answers/,
    /set PORT to a free one/,
  ],
  [
    'a port of a program without HTTP',
    async () => doctor('Service', {}, await listening(net.createServer((socket) => socket.end('220 ready\r\n')))),
    /✗.*is not notebridge/,
    /set PORT to a free one/,
  ],
  [
    'a service without a worker',
    async () => {
      const since = '2026-03-01T10:02:03.000Z';
      const cause = {
        cause: 'No worker is running.',
        action: 'Start one.',
        since,
        hasKnownStart: true,
        affects: ['people'],
      };
      return doctor('Service', {}, await answering(200, JSON.stringify({ status: 'degraded', causes: [cause] })));
    },
    /✗.*is degraded/,
    /No worker is running\.\n +Start one\. Since 2026-03-01 10:02:03 UTC\.\n +Affected: people\./,
  ],
  [
    'a public URL of another program',
    async () => doctor('Public', { PUBLIC_URL: await answering(200, 'welcome') }),
    /✗.*PUBLIC_URL .* leads to a program other than notebridge/,
    /Correct PUBLIC_URL, or the proxy/,
  ],
])('the doctor names %s, and the remedy', async (_, tell, named, remedy) => {
  const output = await tell();
  expect(output).toMatch(named);
  expect(output).toMatch(remedy);
  expect(output).not.toMatch(/wrong|its-own-password|a-key-of-the-platform/);
});

function ofRole(of: TestDatabase): string {
  return changed(of.url, { username: role, password: 'its-own-password' });
}

const redis = process.env.TEST_REDIS_URL;
(redis ? test : test.skip)('the doctor names a Redis that rejects the password', async () => {
  const output = await doctor('Queues', { REDIS_URL: changed(redis ?? '', { username: 'nobody', password: 'wrong' }) });
  expect(output).toMatch(/✗.*Redis refuses the user or the password of REDIS_URL: correct it/);
});

test('no keys are needed by a database that the service has never started on', async () => {
  expect(await doctor('Keys', { DATABASE_URL: empty.url })).toMatch(/✓ Keys.*no stored data needs them yet/);
});

test('an unreadable contract is one fault, not two', async () => {
  const output = await doctor('Addresses', { PLATFORM_CONTRACT: '/nowhere/contract.json' });
  expect(output).toMatch(/^– Addresses +not checked/);
});
