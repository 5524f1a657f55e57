import { spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, readdirSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import {
  findPostgresPrograms,
  type PostgresServer,
  servePostgres,
  serverFolder,
  serverUser,
  startPostgres,
} from '../../harness/postgres-server.js';
import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import { withClient } from '../../src/database/connect/session.js';
import type { ImportResponse } from '../../src/imports/api/import-view.js';
import type { SendingResponse } from '../../src/sending/sending.dto.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from '../support/app.js';
import { blocksOf, commandsIn, ROOT, readPage } from '../support/pages.js';
import { usePrograms } from '../support/programs.js';
import { type TestWorld, useTestWorlds } from '../support/service.js';

const PROGRAMS = findPostgresPrograms();
const PASSWORD = 'password-of-the-tests';
/** The folder into which the page restores a copy of the server. */
const RESTORED = '/var/lib/postgresql/restored';
/** The moment of the page, and the day of its copy. */
const MOMENT = '2026-01-31 03:10:00+00';
const DAY = '2026-01-31';

const page = readPage('docs/operations/backup.md');
const commands = commandsIn(page);
const [dump = '', copy = '', unpack = '', load = ''] = blocksOf(page, 'sh');
const [archiving = '', recovery = ''] = blocksOf(page, 'ini');
const [roles = ''] = blocksOf(readPage('docs/operations/deployment.md'), 'sh').flatMap(
  (block) => /^.*roles\.sql$/m.exec(block) ?? [],
);

const [uninstall = ''] = blocksOf(readPage('docs/operations/uninstall.md'), 'sh').flatMap(
  (block) => /^dropdb.*\ndropuser.*$/m.exec(block) ?? [],
);

const HOLD = { HOLD_SENDING: 'true' };

/** Everyone that the EHR has in the end, as the API names them. Without an email, no lookup finds a client. */
const PROVIDERS = ['providers/home', 'providers/late'];
const CLIENTS = ['clients/old', 'clients/between', 'clients/mail', 'clients/blind', 'clients/fresh'];
const BLIND = ['clients/blind', 'clients/fresh'];

const idOf = (path: string) => path.split('/')[1] ?? '';
const fieldsOf = (path: string) => ({
  externalId: idOf(path),
  email: path.startsWith('providers') || path === 'clients/mail' ? `${idOf(path)}@example.org` : '',
  firstName: 'Pia',
  lastName: idOf(path),
});
function csvOf(paths: readonly string[], more: Record<string, string> = {}): string {
  const lines = paths.map((path) => ({ ...fieldsOf(path), ...more }));
  return [Object.keys(lines[0] ?? {}), ...lines.map((line) => Object.values(line))].map(String).join('\n');
}

(PROGRAMS ? describe : describe.skip)('the commands of docs/operations/backup.md', () => {
  const programs = PROGRAMS as string;
  const newWorld = useTestWorlds();
  const startProgram = usePrograms();
  let folder: string;
  let server: PostgresServer;
  let world: TestWorld;
  let service: Service;
  /** When the backups end. */
  let moment: string;

  /** Runs lines of a page with the folders of the test. @param asServer as the user of PostgreSQL */
  async function run(lines: string, { database = 'notebridge', asServer = false, cwd = folder } = {}): Promise<string> {
    const { port } = new URL(server.url);
    const env = {
      PATH: `${programs}${path.delimiter}${process.env.PATH}`,
      ...{ PGHOST: '127.0.0.1', PGPORT: port, PGUSER: 'owner' },
      DATABASE_OWNER_URL: ownerUrl(database),
    };
    const user = asServer ? serverUser() : {};
    const child = spawn('sh', ['-e', '-c', inFolder(lines)], { cwd, env, ...user });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text));
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect([lines, code, output]).toEqual([lines, 0, output]);
    return output;
  }
  const inFolder = (text: string) =>
    text
      .replaceAll('/backup/', `${folder}/backup/`)
      .replaceAll(RESTORED, `${folder}/restored`)
      .replaceAll(MOMENT, moment)
      .replaceAll(DAY, readdirSync(path.join(folder, 'backup')).sort()[0] ?? '')
      .replaceAll('…', PASSWORD);

  const urlOf = (user: string, database: string) =>
    Object.assign(new URL(server.url), { username: user, password: PASSWORD, pathname: `/${database}` }).toString();
  const ownerUrl = (database: string) => urlOf('keeper', database);
  const settings = (database: string, more = {}) => ({ DATABASE_URL: urlOf('notebridge_service', database), ...more });
  const migrate = (database: string) => world.migrate(settings(database, { DATABASE_OWNER_URL: ownerUrl(database) }));
  const rows = async <Row extends object>(sql: string, database = 'notebridge') =>
    withClient(urlOf('owner', database), async (client) => (await client.query<Row>(sql)).rows);
  const createDatabase = async (name: string) => {
    await rows(`CREATE DATABASE ${name} OWNER keeper`, 'postgres');
    await run(roles, { database: name, cwd: ROOT });
  };

  /** Runs a command of the page. */
  async function notebridge(start: string, ...more: string[]): Promise<[code: number | null, output: string]> {
    const [command = ''] = commands.filter((one) => one.startsWith(`npx notebridge ${start}`));
    const args = [...command.split(' ').slice(2), ...more];
    const env = { NOTEBRIDGE_URL: service.url, NOTEBRIDGE_KEY: ADMIN_KEY, DATA_DIR: folder };
    const program = await startProgram({ file: 'dist/src/cli/main.js', args, env });
    return [await program.ended(), program.output()];
  }

  /** Waits until people have a state, a code, or a platform user. */
  const are = (state: string, paths: readonly string[]) =>
    until(`${paths} are ${state}`, async () => {
      const found = await Promise.all(paths.map((path) => service.call('GET', `/v1/${path}`, { wait: 1 })));
      return found.every(({ body: { sync, platformUserId } }) =>
        [sync?.state, sync?.error?.code, platformUserId && 'linked'].includes(state),
      );
    });
  async function mirrored(...paths: string[]): Promise<void> {
    for (const path of paths) {
      const { externalId: _, email, ...names } = fieldsOf(path);
      const body = { ...names, ...(email && { email }), ...(path.startsWith('clients') && { providers: ['home'] }) };
      await service.call('PUT', `/v1/${path}`, { body });
    }
    await are('synced', paths);
  }
  const stored = async (database: string) =>
    (await rows<{ id: string }>('SELECT external_id AS id FROM people', database)).map(({ id }) => id).sort();
  const usersOf = (path: string) => world.usersOf(idOf(path));
  const creates = () => world.arrivals('createClient') + world.arrivals('createProvider');
  const send = (query: string, name: string, content: string) =>
    service.startImport(query, [{ name, type: 'text/csv', content }]);

  beforeAll(async () => {
    folder = serverFolder(mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'restore-')));
    for (const made of ['backup', 'backup/wal']) serverFolder(path.join(folder, made));
    server = await startPostgres(programs, path.join(folder, 'server'), `fsync = off\n${inFolder(archiving)}`);
    await rows(`CREATE ROLE keeper LOGIN CREATEROLE PASSWORD '${PASSWORD}'`, 'postgres');
    await createDatabase('notebridge');
    const sql = new pg.Pool({ connectionString: urlOf('owner', 'notebridge') }).on('error', () => undefined);
    world = await newWorld({
      database: { url: urlOf('notebridge_service', 'notebridge'), sql, drop: () => sql.end() },
      platform: { stepMs: 0, webhookSecret: WEBHOOK_SECRET },
    });
    await migrate('notebridge');
    service = await world.start();
    await mirrored('providers/home', 'clients/old');
  });
  afterAll(() => server.release());

  afterEach(() => {
    expect(world.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
  });

  it('copy and dump the server while it is used', async () => {
    await run(copy, { asServer: true });
    await mirrored('clients/between');
    moment = (await rows<{ now: string }>('SELECT clock_timestamp()::text AS now'))[0]?.now ?? '';
    await run(dump);
    await mirrored('clients/mail', 'clients/blind', 'providers/late');
    await service.kill('SIGTERM');
    await server.release();
  });

  it('restore the server to a moment, on which a service starts that sends nothing', async () => {
    await run(unpack, { asServer: true });
    const data = path.join(folder, 'restored');
    appendFileSync(path.join(data, 'postgresql.conf'), inFolder(recovery));
    server = await servePostgres(programs, data);
    await until('the recovery has ended', async () => {
      const [found] = await rows<{ isOver: boolean }>('SELECT NOT pg_is_in_recovery() AS "isOver"');
      return found?.isOver;
    });
    expect(await stored('notebridge')).toEqual(['between', 'home', 'old']);
    const before = creates();
    await migrate('notebridge');
    service = await world.start(settings('notebridge', HOLD));
    await are('synced', ['providers/home', 'clients/old', 'clients/between']);
    expect((await service.call<SendingResponse>('GET', '/v1/sending')).body).toMatchObject({ heldBySetting: true });
    expect(creates()).toBe(before);
    await service.kill('SIGTERM');
  });

  it('restore a dump, and lead to a platform with everyone once', async () => {
    await createDatabase('from_dump');
    await run(load, { database: 'from_dump' });
    expect(await stored('from_dump')).toEqual(['between', 'home', 'old']);
    await migrate('from_dump');
    service = await world.start(settings('from_dump', HOLD));

    const { id } = await send('kind=providers&mode=snapshot', 'providers.csv', csvOf(PROVIDERS));
    const planned = await send('kind=clients&mode=snapshot', 'clients.csv', csvOf(CLIENTS, { providers: 'home' }));
    for (const one of [id, planned.id]) {
      await until('the plan is made', async () => {
        const { body } = await service.call<ImportResponse>('GET', `/v1/imports/${one}`, { wait: 1 });
        return body.state === 'planned';
      });
      expect((await service.call('POST', `/v1/imports/${one}/apply`, { body: {} })).status).toBe(202);
    }
    const since = new Date(moment).toISOString();
    expect(await notebridge('refresh --since', since)).toEqual([0, expect.any(String)]);
    await are('linked', [...PROVIDERS, ...CLIENTS.filter((path) => !BLIND.includes(path))]);
    await are('held', BLIND);

    await service.kill('SIGTERM');
    service = await world.start(settings('from_dump'));
    expect(usersOf('clients/fresh')).toEqual([]);
    expect(await notebridge('release')).toEqual([0, expect.stringContaining('The hold has ended')]);
    await are('restored-unknown', BLIND);
    const [blind] = usersOf('clients/blind');
    await send('', 'links.csv', `kind,externalId,platformUserId\nclient,blind,${blind?.userId}`);
    await are('linked', ['clients/blind']);
    const resolved = await notebridge('resolve-all', '--yes');
    expect(resolved).toEqual([0, expect.stringContaining('1 person with restored-unknown resolved')]);
    await are('synced', [...PROVIDERS, ...CLIENTS]);
    for (const path of [...PROVIDERS, ...CLIENTS]) expect([path, usersOf(path).length]).toEqual([path, 1]);
    expect(await notebridge('people')).toEqual([0, expect.stringContaining('No matching people.')]);
    expect(await notebridge('sessions')).toEqual([0, expect.stringContaining('No matching sessions.')]);
    await service.kill('SIGTERM');
  });

  it('are followed by those of docs/operations/uninstall.md, which leave nothing on the server', async () => {
    await run('dropdb --force from_dump');
    await run(uninstall);
    const left = `SELECT datname::text AS name FROM pg_database WHERE datname LIKE 'notebridge%'
      UNION SELECT rolname FROM pg_roles WHERE rolname LIKE 'notebridge%'`;
    expect(await rows(left, 'postgres')).toEqual([]);
  });
});
