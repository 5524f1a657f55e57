import { randomBytes } from 'node:crypto';
import { settingsFor } from '../../harness/world/settings.js';
import { validateEnv } from '../../src/config/env.validation.js';
import { withClient } from '../../src/database/connect/session.js';
import { serviceRoleSql } from '../../src/database/runtime-role.js';
import { prepare } from '../../src/prepare.js';
import { createDatabase, query, type TestDatabase } from '../support/databases.js';

const SERVER = () => process.env.TEST_PG_URL ?? '';
const PASSWORD = 'password-of-the-tests';
const tag = randomBytes(6).toString('hex');
const [owner, service] = [`owner_${tag}`, `service_${tag}`];

let database: TestDatabase;
let name: string;

beforeEach(async () => {
  database = await createDatabase(SERVER());
  name = new URL(database.url).pathname.slice(1);
  await query(database, 'REVOKE CREATE ON SCHEMA public FROM PUBLIC');
  await query(database, `CREATE ROLE ${owner} LOGIN CREATEROLE PASSWORD '${PASSWORD}'`);
});

afterEach(async () => {
  await database.drop();
  await withClient(SERVER(), (client) => client.query(`DROP ROLE IF EXISTS ${service}, ${owner}`));
});

const as = (role: string) =>
  Object.assign(new URL(database.url), { username: role, password: PASSWORD, search: '' }).toString();

/** Prepares a start. @returns what it did, or the sentence with which it ends */
async function start(settings: Record<string, string | undefined>) {
  const env = validateEnv({ ...settingsFor('http://127.0.0.1:9', database.url), ...settings });
  return prepare(env).then(
    ({ notes, warnings }) => ({ said: '', notes, warnings, url: env.DATABASE_URL }),
    (error: Error) => ({ said: error.message, notes: [], warnings: [], url: '' }),
  );
}

const tables = async () =>
  query<{ schema: string; count: number }>(
    database,
    `SELECT table_schema AS schema, count(*)::int AS count FROM information_schema.tables
     WHERE table_schema NOT IN ('pg_catalog', 'information_schema') GROUP BY 1 ORDER BY 1`,
  );

/** Gives the owner a schema other than public, as on PostgreSQL 15 and later. */
async function ownSchema(): Promise<void> {
  await query(database, `CREATE SCHEMA notebridge AUTHORIZATION ${owner}`);
  await query(database, `ALTER ROLE ${owner} IN DATABASE ${name} SET search_path = notebridge`);
  await query(database, `GRANT CREATE ON DATABASE ${name} TO ${owner}`);
}

describe('a start', () => {
  it('creates every table in the schema of its role, and pins it', async () => {
    await ownSchema();
    const { said, url } = await start({ DATABASE_URL: as(owner) });
    expect(said).toBe('');
    expect((await tables()).map(({ schema }) => schema)).toEqual(['bullmq', 'notebridge']);
    await query(database, `ALTER ROLE ${owner} IN DATABASE ${name} RESET search_path`);
    const schema = await withClient(url, (client) => client.query('SELECT current_schema() AS schema'));
    expect(schema.rows).toEqual([{ schema: 'notebridge' }]);
  });

  it('uses the schema of the owner with the role that roles.sql creates', async () => {
    await ownSchema();
    await withClient(as(owner), (client) =>
      client.query(serviceRoleSql(PASSWORD).replaceAll('notebridge_service', service)),
    );
    const urls = { DATABASE_URL: as(service), DATABASE_OWNER_URL: as(owner) };
    expect(await start(urls)).toMatchObject({ said: '', notes: [expect.stringMatching(/^applied the migrations/)] });
    expect(await start({ DATABASE_URL: as(service) })).toMatchObject({ said: '', warnings: [] });
    const finish = (at: string) => query(database, `UPDATE notebridge._prisma_migrations SET finished_at = ${at}`);
    await finish('NULL');
    const lacking = /^The database lacks the migrations \d+_\w+.* run migrate first/;
    expect((await start({ DATABASE_URL: as(service) })).said).toMatch(lacking);
    await finish('now()');
    await query(database, `ALTER ROLE ${service} IN DATABASE ${name} SET search_path = public`);
    expect((await start(urls)).said).toMatch(/uses the schema public, that of DATABASE_OWNER_URL .* notebridge\. Run/);
  });

  it.each([
    ['the right to create tables', '', /may not create tables in the schema public\. Create one/],
    [
      'a schema that exists',
      `ALTER ROLE ${owner} SET search_path = nowhere`,
      /search_path of the role in DATABASE_URL names no schema/,
    ],
    [
      'the right to create the schema of the queues',
      `CREATE SCHEMA own AUTHORIZATION ${owner}; ALTER ROLE ${owner} SET search_path = own`,
      /may not create the schema of the queues, bullmq\. Grant it CREATE ON DATABASE/,
    ],
    [
      'the right to write',
      `ALTER ROLE ${owner} SET default_transaction_read_only = on`,
      /accepts no writes from DATABASE_URL, .* Name the primary/,
    ],
    [
      'commits that survive a crash',
      `ALTER ROLE ${owner} SET synchronous_commit = off`,
      /synchronous_commit off .* Set it to on/,
    ],
  ])('without %s ends with one sentence, before the first table', async (_, change, sentence) => {
    if (change !== '') await query(database, change);
    const { said } = await start({ DATABASE_URL: as(owner) });
    expect(said).toMatch(sentence);
    expect(said).not.toContain('\n');
    expect(await tables()).toEqual([]);
  });

  it('warns if its role can change the audit log, or if it has DATABASE_OWNER_URL', async () => {
    await ownSchema();
    const { said, warnings } = await start({ DATABASE_URL: as(owner), DATABASE_OWNER_URL: as(owner) });
    expect(said).toBe('');
    expect(warnings).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^The audit log is not protected from the service itself/),
        expect.stringMatching(/^DATABASE_OWNER_URL is set for a process that serves/),
      ]),
    );
  });

  it('without a database to serve from ends with one sentence', async () => {
    const missing = Object.assign(new URL(as(owner)), { pathname: '/none' }).toString();
    expect((await start({ DATABASE_URL: missing })).said).toMatch(/database in DATABASE_URL does not exist/);
  });

  it('on a LATIN1 database ends with one sentence, before the first table', async () => {
    await withClient(SERVER(), (client) =>
      client.query(`CREATE DATABASE latin_${tag} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`),
    );
    const url = Object.assign(new URL(database.url), { pathname: `/latin_${tag}` }).toString();
    const { said } = await start({ DATABASE_URL: url });
    await withClient(SERVER(), (client) => client.query(`DROP DATABASE latin_${tag}`));
    expect(said).toMatch(/has the encoding LATIN1, .* Create one with UTF8/);
  });
});
