import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { startOfCompose } from '../../harness/deployment-files.js';
import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import { serviceRoleSql } from '../../src/database/runtime-role.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { createDatabase } from '../support/databases.js';
import { deployedSettings } from '../support/deployed.js';
import { partIs } from '../support/health.js';
import { usePrograms } from '../support/programs.js';
import { type TestWorld, useTestWorlds } from '../support/service.js';

const PASSWORD = 'password-of-the-tests';

/** Defaults of the role that would break a connection which does not set its own. */
const HOSTILE_DEFAULTS = {
  default_transaction_isolation: 'serializable',
  DateStyle: 'German, DMY',
  TimeZone: 'Pacific/Kiritimati',
  lock_timeout: '1',
  statement_timeout: '1s',
  idle_in_transaction_session_timeout: '1s',
  idle_session_timeout: '1s',
  transaction_timeout: '1s', // a shorter one could end the statement that turns it off
};

async function sql(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

function as(url: string, user: string, password: string): string {
  const address = new URL(url);
  address.username = user;
  address.password = password;
  return address.toString();
}

describe('a service whose role owns nothing', () => {
  const newWorld = useTestWorlds();
  const startProgram = usePrograms();
  const role = `runtime_${randomBytes(6).toString('hex')}`;
  let world: TestWorld;
  let service: Service;
  /** The output of migrate, the first and the second time. */
  let migrated: string[];

  let env: Record<string, string | undefined>;
  beforeAll(async () => {
    // Empty, as an operator's is when roles.sql runs before the first migration.
    world = await newWorld({ database: await createDatabase(process.env.TEST_PG_URL ?? '') });
    const { url } = world.database;
    await sql(
      url,
      'REVOKE CREATE ON SCHEMA public FROM PUBLIC',
      serviceRoleSql(PASSWORD).replaceAll('notebridge_service', role),
    );
    for (const [name, value] of Object.entries(HOSTILE_DEFAULTS))
      await sql(url, `ALTER ROLE ${role} SET ${name} = '${value}'`);
    env = { DATABASE_URL: as(url, role, PASSWORD) };
    const start = startOfCompose('migrate');
    const settings = deployedSettings(start, { ...world.settings, ...env, DATABASE_OWNER_URL: url });
    const migrate = () => world.migrate(settings, start.command);
    migrated = [await migrate(), await migrate()];
    service = await world.start(env);
  });

  // Its rights end with the database.
  afterAll(() => sql(process.env.TEST_PG_URL ?? '', `DROP ROLE ${role}`));

  it('gets its tables from migrate, which prints what it did', () => {
    expect(migrated).toEqual([
      expect.stringMatching(/^applied the migrations \d+_\w+(, \d+_\w+)*\n$/),
      'the database is up to date: it has all migrations\n',
    ]);
  });

  it('has the rights that it needs by roles.sql, and starts without a warning', async () => {
    expect((await partIs(service, 'database', 'ok')).facts).toEqual({ auditLogProtected: true });
    expect(service.output()).not.toMatch(/audit log|DATABASE_OWNER_URL/);
    const owned = 'SELECT FROM pg_class WHERE relowner = $1::regrole';
    expect(await world.sql(owned, [role])).toEqual([]);
  });

  it('mirrors people under any defaults of its role', async () => {
    const body = { email: 'ada@example.org', firstName: 'Ada', lastName: 'Osei' };
    await service.call('PUT', '/v1/providers/p-1', { body });
    await until('the provider is mirrored', async () => {
      const { body: person } = await service.call('GET', '/v1/providers/p-1', { wait: 1 });
      return person.sync.state === 'synced';
    });
    await until('every part is ok', async () => {
      const { body: health } = await service.call<{ status: string }>('GET', '/health/ready');
      return health.status === 'ok';
    });
    expect(service.output()).not.toMatch(/permission denied|\b42501\b|terminating connection/);
    // A stalled machine causes errors about timeouts and locks.
    const errors = service.output().match(/^.*"level":(50|"error").*$/gm) ?? [];
    expect(errors.filter((line) => !/timeout|lock/i.test(line))).toEqual([]);
  });

  it('may neither change the audit log nor the schema', async () => {
    for (const statement of [
      'DELETE FROM audit_entries',
      `SET notebridge.audit_pruning = 'on'; DELETE FROM audit_entries`,
      `CREATE TEMP TABLE pg_class AS SELECT oid, current_user::regrole::oid AS relowner FROM pg_catalog.pg_class;
       SET search_path = pg_temp, pg_catalog, public; SET notebridge.audit_pruning = 'on'; DELETE FROM audit_entries`,
      `UPDATE audit_entries SET outcome = 'other'`,
      'DELETE FROM audit_subjects',
      'UPDATE audit_links SET no = 0',
      `SET notebridge.audit_rotation = 'on'; UPDATE audit_links SET former = '{}'`,
      'SELECT prune_audit(now(), 1)',
      'TRUNCATE people',
      'DELETE FROM _prisma_migrations',
      'UPDATE _prisma_migrations SET finished_at = NULL',
      'CREATE TABLE other (id int)',
      'ALTER TABLE audit_entries DISABLE TRIGGER ALL',
      `SET session_replication_role = 'replica'`,
    ]) {
      const done = sql(as(world.database.url, role, PASSWORD), statement).then(
        () => 'done',
        ({ code }: { code: string }) => code,
      );
      expect([statement, await done]).toEqual([statement, statement.includes('prune') ? 'P0001' : '42501']);
    }
  });

  it('is the only role that may prune the audit log', async () => {
    const prune = `SELECT prune_audit(now() - interval '2 years', 0)`;
    await sql(as(world.database.url, role, PASSWORD), prune);
    const canPublicPrune = `SELECT has_function_privilege('public', 'prune_audit(timestamptz, bigint)', 'EXECUTE') AS may`;
    expect(await world.sql(canPublicPrune)).toEqual([{ may: false }]);
  });

  it('cannot prune recent entries with forged links', async () => {
    const forge = (no: string) =>
      `INSERT INTO audit_links (no, at, entries, previous, mac)
       SELECT ${no}, '2001-01-01', array_agg(id), '', '' FROM audit_entries`;
    const present = async () => {
      const text = `SELECT 'entry ' || id AS it FROM audit_entries UNION SELECT 'link ' || no FROM audit_links WHERE no > 0`;
      return (await world.sql<{ it: string }>(text)).map(({ it }) => it);
    };
    const address = as(world.database.url, role, PASSWORD);
    // A link in the making would take the next number.
    await until('every entry is linked', async () => {
      const [row] = await world.sql<{ linked: boolean }>(
        `SELECT EXISTS (SELECT FROM audit_links) AND NOT EXISTS (SELECT FROM audit_unlinked) AS linked`,
      );
      return row?.linked;
    });
    await sql(address, forge('-1'), forge('1 + (SELECT max(no) FROM audit_links)'));
    const before = await present();
    await sql(address, `SELECT prune_audit(now() - interval '2 years', -1)`);
    await expect(sql(address, `SELECT prune_audit(now() - interval '2 years', 1)`)).rejects.toThrow('too young');
    expect(await present()).toEqual(expect.arrayContaining(before));
    expect(await world.sql('SELECT FROM audit_links WHERE no = -1')).toEqual([]);
  });

  it('may analyse the tables of imports since PostgreSQL 17', async () => {
    const client = new pg.Client({ connectionString: env.DATABASE_URL });
    const notices: (string | undefined)[] = [];
    client.on('notice', ({ message }) => notices.push(message));
    await client.connect();
    await client.query('ANALYZE import_rows; ANALYZE people; ANALYZE client_providers');
    const { rows } = await client.query(`SELECT current_setting('server_version_num')::int >= 170000 AS may`);
    await client.end();
    if (rows[0].may) expect(notices).toEqual([]);
  });

  it('does not start without the data key of the database', async () => {
    const keys = { DATA_KEYS: `k2:${Buffer.alloc(32, 8).toString('base64')}` };
    const program = await startProgram({ file: 'dist/src/main.js', env: { ...world.settings, ...env, ...keys } });
    expect(await program.ended()).toBe(1);
    const said = program.output().replace(/^\{.*\}\n/gm, ''); // without the log
    expect(said).toMatch(/^DATA_KEYS lacks the key k1, which stored data needs\. Add it[^\n]*\n$/);
  });

  it('is down while its role is read-only, and names the cause when the database is gone', async () => {
    const { url } = world.database;
    const newConnections = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`;
    const healthBecomes = (status: number) =>
      until(`health is ${status}`, async () => (await service.call('GET', '/health/ready')).status === status);
    await sql(url, `ALTER ROLE ${role} SET default_transaction_read_only = on`, newConnections);
    await healthBecomes(503);
    await sql(url, `ALTER ROLE ${role} RESET default_transaction_read_only`, newConnections);
    await healthBecomes(200);

    await world.database.drop();
    await until('its health names the cause', async () => {
      const { causes, checks } = (await service.call<HealthReport>('GET', '/health/ready')).body;
      const hasOneCause = causes.length === 1 && causes[0]?.code === 'database-unavailable';
      return hasOneCause && checks.people?.causedBy === 'database';
    });
    expect(service.output()).not.toContain('a health check failed');
  });
});
