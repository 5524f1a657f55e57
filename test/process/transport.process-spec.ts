import { once } from 'node:events';
import { chownSync, mkdirSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { createServer, rootCertificates } from 'node:tls';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../demo/embedded-postgres/embedded-postgres.js';
import { freePort } from '../../harness/free-port.js';
import { askRedis, findRedisServer, type RedisServer, startRedis } from '../../harness/redis-server.js';
import { SELF_SIGNED } from '../../harness/self-signed.js';
import { READY, serviceOf } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import { ADMIN_KEY, testSettings } from '../support/app.js';
import { partIs } from '../support/health.js';
import { usePrograms } from '../support/programs.js';

const run = usePrograms();

it('NODE_TLS_REJECT_UNAUTHORIZED=0 does not make an untrusted platform trusted', async () => {
  const program = await run({
    file: 'test/support/untrusted-platform.mjs',
    args: [JSON.stringify([SELF_SIGNED.key, SELF_SIGNED.cert])],
    env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' },
  });
  const [printed = ''] = await program.printed(/^\{.*\}$/m);
  expect(JSON.parse(printed)).toEqual({ usual: 200, ours: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
});

/** Self-signed for elsewhere.example, so useless for other hosts. */
const ELSEWHERE = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgQmiivkMrT0wx3y9z
btkwtoMm4W6ogEDHSa3h2fEB7XOhRANCAAR2Jf2VUV7b0/inIDLsTAj13ptGI2OR
qDULKCiEGp00+iTyR2Feu6rEiGNW7fkTYzqpIvXnFfI+kKnOnEu5AXv3
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBrTCCAVOgAwIBAgIUDCZFbHB2BhBY3nJ+yj68tMhHJVgwCgYIKoZIzj0EAwIw
HDEaMBgGA1UEAwwRZWxzZXdoZXJlLmV4YW1wbGUwIBcNMjYxMTIzMDY0MjU3WhgP
MjEyNjEwMzAwNjQyNTdaMBwxGjAYBgNVBAMMEWVsc2V3aGVyZS5leGFtcGxlMFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEdiX9lVFe29P4pyAy7EwI9d6bRiNjkag1
CygohBqdNPok8kdhXruqxIhjVu35E2M6qSL15xXyPpCpzpxLuQF796NxMG8wHQYD
VR0OBBYEFFIJ1a3gapTZQPFbcAtGABOu0quyMB8GA1UdIwQYMBaAFFIJ1a3gapTZ
QPFbcAtGABOu0quyMA8GA1UdEwEB/wQFMAMBAf8wHAYDVR0RBBUwE4IRZWxzZXdo
ZXJlLmV4YW1wbGUwCgYIKoZIzj0EAwIDSAAwRQIhAIksq1IiyhUxAUjQwF6BMdTh
zX1Hqv1uX1J5a3aLyklzAiBFtv6E35kWlLT/ZUqckXVlhldYGWyTJR58rdkfpJzc
3Q==
-----END CERTIFICATE-----`,
};

/** A PostgreSQL and a Redis that speak TLS, with the certificate for localhost; its authority is in `ca`. */
describe('stores behind TLS', () => {
  const folder = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'tls-'));
  const fileOf = (name: string, content: string) => {
    writeFileSync(path.join(folder, name), content, { mode: 0o600 });
    return path.join(folder, name);
  };
  const ca = fileOf('ca.pem', SELF_SIGNED.cert);
  const stranger = fileOf('stranger.pem', rootCertificates[0] ?? '');
  const elsewhere = fileOf('elsewhere.pem', ELSEWHERE.cert);
  const redisServer = findRedisServer();
  let postgres: EmbeddedPostgres;
  let redis: RedisServer | undefined;
  let tlsPort: number;

  beforeAll(async () => {
    postgres = await startEmbeddedPostgres(folder);
    await present(SELF_SIGNED);
    if (!redisServer) return;
    tlsPort = await freePort();
    const key = fileOf('redis.key', SELF_SIGNED.key);
    mkdirSync(path.join(folder, 'redis'));
    redis = await startRedis(redisServer, path.join(folder, 'redis'), 0, {
      ...{ 'tls-port': tlsPort, 'tls-cert-file': ca, 'tls-key-file': key, 'tls-ca-cert-file': ca },
      'tls-auth-clients': 'no',
    });
  });
  afterAll(async () => {
    await redis?.stop();
    await postgres.release();
  });

  async function onPostgres<Row extends pg.QueryResultRow>(...statements: string[]): Promise<Row[]> {
    const client = new pg.Client(postgres.url);
    await client.connect();
    let rows: Row[] = [];
    for (const statement of statements) rows = (await client.query<Row>(statement)).rows;
    await client.end();
    return rows;
  }

  /** Makes PostgreSQL present a certificate from now on. */
  async function present({ key, cert }: typeof SELF_SIGNED): Promise<void> {
    const data = path.join(postgres.home, 'cluster', 'data');
    const { uid, gid } = statSync(data);
    for (const [name, content] of Object.entries({ 'tls.key': key, 'tls.crt': cert })) {
      writeFileSync(path.join(data, name), content, { mode: 0o600 });
      chownSync(path.join(data, name), uid, gid);
    }
    await onPostgres(
      `ALTER SYSTEM SET ssl_cert_file = 'tls.crt'`,
      `ALTER SYSTEM SET ssl_key_file = 'tls.key'`,
      'ALTER SYSTEM SET ssl = on',
      'SELECT pg_reload_conf()',
    );
    const subject = new RegExp(cert === SELF_SIGNED.cert ? 'localhost' : 'elsewhere');
    await until('it shows this certificate', () => shows(subject));
  }

  async function shows(subject: RegExp): Promise<boolean> {
    const client = new pg.Client({ connectionString: postgres.url, ssl: { rejectUnauthorized: false } });
    client.on('error', () => undefined);
    const isThere = await client.connect().then(
      () => true,
      () => false,
    );
    const stream = Reflect.get(client.connection, 'stream') as { getPeerCertificate?(): { subject: { CN: string } } };
    const name = isThere ? stream.getPeerCertificate?.().subject.CN : undefined;
    await client.end();
    return name !== undefined && subject.test(name);
  }

  const overTls = (url: string, authority: string): string => {
    const { href } = Object.assign(new URL(url), { hostname: 'localhost' });
    return `${href}?sslmode=verify-full&sslrootcert=${authority}`;
  };
  const settings = (more: Record<string, string>) => ({
    ...testSettings(overTls(postgres.servingUrl, ca)),
    ...{ DATABASE_OWNER_URL: overTls(postgres.url, ca), PORT: '0', ...more },
  });

  it('are used only over TLS', async () => {
    const more = { REDIS_URL: `rediss://localhost:${tlsPort}`, NODE_EXTRA_CA_CERTS: ca };
    const env = settings(redis ? more : {});
    const service = serviceOf(await run({ file: 'dist/src/main.js', env, ready: READY }), ADMIN_KEY);
    for (const part of ['database', 'queue']) await partIs(service, part, 'ok');
    const ways = await onPostgres<{ ssl: boolean }>(
      `SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'notebridge_service'`,
    );
    expect(ways).toEqual([{ ssl: true }]);
    if (redis) expect(await askRedis(redis.port, 'CLIENT LIST')).toContain(`laddr=127.0.0.1:${tlsPort} `);
    expect(await service.kill('SIGTERM')).toBe(0);
  });

  it('are rejected without a trusted certificate, in one sentence that names the setting', async () => {
    const plain = { DATABASE_URL: postgres.url };
    const postgresFaults: [settings: Record<string, string>, sentence: RegExp][] = [
      [
        { ...plain, DATABASE_OWNER_URL: overTls(postgres.url, stranger) },
        /^PostgreSQL .* no trusted authority .* &sslrootcert=.* in DATABASE_OWNER_URL\.$/,
      ],
      [
        { ...plain, DATABASE_OWNER_URL: overTls(process.env.TEST_PG_URL ?? '', ca) },
        /^PostgreSQL .* it does not speak TLS .*DATABASE_OWNER_URL\.$/,
      ],
      [
        { DATABASE_URL: overTls(postgres.url, elsewhere), DATABASE_OWNER_URL: '' },
        /^PostgreSQL .* for another host .* in DATABASE_URL\.$/,
      ],
    ];
    const untrustedServer = createServer(ELSEWHERE)
      .on('tlsClientError', () => undefined)
      .listen(0, '127.0.0.1');
    await once(untrustedServer, 'listening');
    const { port } = untrustedServer.address() as AddressInfo;
    const redisFaults: typeof postgresFaults = [
      [
        { ...plain, DATABASE_OWNER_URL: '', REDIS_URL: `rediss://localhost:${tlsPort}` },
        /^Redis .* no trusted authority .* in NODE_EXTRA_CA_CERTS.*$/,
      ],
      [
        { ...plain, DATABASE_OWNER_URL: '', REDIS_URL: `rediss://localhost:${port}` },
        /^Redis .* for another host .* in REDIS_URL\.$/,
      ],
    ];
    const faults = [...postgresFaults, ...(redis ? redisFaults : [])];
    await present(ELSEWHERE);
    const program = await run({
      file: 'test/support/prepare-starts.mjs',
      args: [JSON.stringify(faults.map(([more]) => settings(more)))],
      env: { NODE_EXTRA_CA_CERTS: elsewhere },
    });
    expect([await program.ended(), program.output()]).toEqual([0, expect.any(String)]);
    untrustedServer.close();
    const sentences = faults.map(([, sentence]) => expect.stringMatching(sentence));
    expect(program.output().trimEnd().split('\n')).toEqual(sentences);
  });
});
