import { randomUUID } from 'node:crypto';
import { until } from '../harness/until.js';
import { ImportRunner } from '../src/imports/run/import-runner.service.js';
import { ImportUploads } from '../src/imports/upload/import-uploads.service.js';
import { UploadConnectionPool } from '../src/imports/upload/upload-connections.js';
import { PeopleService } from '../src/people/api/people.service.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv } from './support/bulk.js';
import { freshDatabase, query, type TestDatabase } from './support/databases.js';
import { type ImportsApp, startImports } from './support/imports-app.js';

let home: TestDatabase;
let app: ImportsApp;

beforeAll(async () => {
  home = await freshDatabase();
  app = await startImports(home.url, { IMPORT_MAX_ROWS: '2000', IMPORT_MAX_PROVIDER_REMOVALS: '10%,5' });
});

afterAll(async () => {
  await app.close();
  await home.drop();
});

afterEach(async () => {
  await query(home, 'TRUNCATE people, imports CASCADE');
});

const sql = <Row extends object>(text: string) => query<Row & Record<string, unknown>>(home, text);
const imports = () => sql('SELECT 1 FROM imports');

/** Everybody is mirrored, as far as this database says. */
const mirrored = () =>
  sql(`UPDATE people SET state = 'synced', step = NULL, due_at = NULL, paused_by_import = NULL,
    platform_user_id = 'u-' || external_id, origin = 'created'`);

async function run(): Promise<void> {
  await app.steps.prepareAll();
  await mirrored();
  await app.steps.countAll();
}

test('the rejected rows of an import are no snapshot: who was right does not stand in them', async () => {
  const [header, row] = [
    'externalId,email,firstName,lastName,line,code,hint,check',
    'p-1,p-1@example.org,Pia,One,2,bad-email,x,abcdefghijkl',
  ];
  const file = { name: 'providers.csv', type: 'text/csv', content: `${header}\n${row}\n` };
  const sent = app.stage({ kind: 'providers', mode: 'snapshot' }, [file]);
  await expect(sent).rejects.toMatchObject({ status: 422, type: 'rejected-rows' });
  await app.stage({ kind: 'providers', mode: 'upsert' }, [file]);
});

test('a retry weighs what it plans anew against the thresholds, and goes over them on somebody’s word alone', async () => {
  const clients = many(20, 'c');
  const list = (providers: string[]) => clientsCsv(clients.map((one) => clientLine(one, providers)));
  await app.stage({}, [providersCsv(['p-1', 'p-2'].map((id) => providerLine(id))), list(['p-1'])]);
  await run();
  // The plan adds a provider; meanwhile others give the clients a third one, whom the plan made anew would take away.
  const id = await app.stage({ dryRun: true }, [list(['p-1', 'p-2'])]);
  await app.steps.prepareAll();
  const people = app.app.get(PeopleService);
  const body = { email: null, firstName: 'Cleo', lastName: 'New' };
  await people.put({ kind: 'provider', externalId: 'p-3' }, { ...body, email: 'p-3@example.org' });
  for (const one of clients) await people.put({ kind: 'client', externalId: one }, body, ['p-1', 'p-3']);
  await app.imports.apply(id, []);
  await run();
  expect((await app.imports.show(id)).counts).toMatchObject({ skipped: 20 });

  const refused = expect(app.imports.retry(id, [])).rejects;
  await refused.toMatchObject({ status: 409, type: 'threshold-exceeded' });
  expect((await app.imports.show(id)).counts).toMatchObject({ skipped: 20 });
  await app.imports.retry(id, ['providerRemovals']);
  await run();
  expect((await app.imports.show(id)).counts).toMatchObject({ updated: 20 });
});

test('an upload that finds no place leaves no import behind', async () => {
  const room = app.app.get(UploadConnectionPool);
  const free: (() => void)[] = [];
  const taken = Array.from({ length: 4 }, () =>
    room.transaction(() => new Promise<void>((resolve) => free.push(resolve))),
  );
  await until('every place is taken', () => free.length === 4);
  const sent = app.stage({ kind: 'providers' }, [providersCsv([providerLine('p-1')])]);
  await expect(sent).rejects.toMatchObject({ status: 503, type: 'too-many-uploads' });
  expect(await imports()).toEqual([]);
  for (const leave of free) leave();
  await Promise.all(taken);
});

/** Sends a form as it stands. */
async function send(
  parts: string[],
  query = 'kind=clients',
): Promise<{ status: number; body: { id: string; type?: string } }> {
  const body = [...parts.map((part) => `--b\r\n${part}\r\n`), '--b--\r\n'].join('');
  const headers = { authorization: `Bearer ${app.key}`, 'content-type': 'multipart/form-data; boundary=b' };
  const response = await fetch(`${app.url}/v1/imports?${query}`, { method: 'POST', headers, body });
  return { status: response.status, body: (await response.json()) as { id: string } };
}

const csvPart = (name: string, lines: string, filename = '') =>
  `Content-Disposition: form-data; name="${name}"${filename}\r\nContent-Type: text/csv\r\n\r\n${lines}`;

test('a part without a filename is read like any other', async () => {
  const providers = csvPart('providers', 'externalId,email,firstName,lastName\np-1,p-1@example.org,Pia,One');
  const clients = csvPart(
    'clients',
    'externalId,email,firstName,lastName,providers\nc-1,,Cleo,Two,p-1',
    '; filename="c.csv"',
  );
  const { status, body } = await send([providers, clients]);
  expect([status, (await app.imports.show(body.id)).counts.total]).toEqual([202, 2]);
});

test('one import may hold ten thousand files', async () => {
  const files = Array.from({ length: 700 }, (_, at) =>
    csvPart(
      'providers',
      `externalId,email,firstName,lastName\np-${at},p-${at}@example.org,Pia,N`,
      `; filename="p-${at}.csv"`,
    ),
  );
  const { status, body } = await send(files);
  expect([status, (await app.imports.show(body.id)).counts.total]).toEqual([202, 700]);
});

test('an import of more rows than may be stored is refused as a whole', async () => {
  const lines = Array.from({ length: 2_001 }, () => 'x').join('\n');
  const { status, body } = await send([csvPart('providers', `externalId,email,firstName,lastName\n${lines}`)]);
  expect([status, body.type]).toEqual([413, 'urn:notebridge:problem:too-many-rows']);
  expect(await sql('SELECT 1 FROM import_rows')).toEqual([]);
});

test('a deletion that failed needs somebody, like a row', async () => {
  await app.stage({ kind: 'providers' }, [providersCsv(many(2, 'p').map((id) => providerLine(id)))]);
  await run();
  const id = await app.stage({ kind: 'providers', mode: 'snapshot' }, [providersCsv([providerLine('p-1')])]);
  await app.steps.prepareAll();
  expect(await app.imports.show(id)).toMatchObject({ needAttention: 0 });
  await app.imports.apply(id, ['deletes']);
  await app.steps.prepareAll();
  await sql(`UPDATE people SET state = 'failed', error_code = 'rejected', due_at = NULL WHERE NOT wanted`);
  await app.steps.countAll();
  const view = await app.imports.show(id);
  expect([view.state, view.deletes, view.needAttention]).toEqual(['completed', { failed: 1 }, 1]);
});

test('how long it takes is not told while nothing can be sent: it is said why', async () => {
  const id = await app.stage({ kind: 'providers' }, [providersCsv([providerLine('p-1')])]);
  const told = async () => {
    const { etaSeconds, etaUnknown } = await app.imports.show(id);
    return [etaSeconds === null, etaUnknown];
  };
  expect(await told()).toEqual([true, null]);
  await app.steps.prepareAll();
  expect(await told()).toEqual([false, null]);
  await sql(`INSERT INTO circuits (operation, opened_at, code) VALUES ('checkUser', now(), 'platform-unauthorized')`);
  expect(await told()).toEqual([true, 'platform-unauthorized']);
  await sql(`UPDATE circuits SET operation = 'createClient', code = 'platform-fault'`);
  expect(await told()).toEqual([true, 'platform-fault']);
  await sql('DELETE FROM circuits');
  await app.imports.pause(id);
  expect(await told()).toEqual([true, 'paused']);
  await app.imports.cancel(id);
  expect(await told()).toEqual([true, null]);
  expect(await app.app.get(ImportRunner).health()).toEqual({ status: 'ok' });
});

test('an upload whose import is cancelled while it is read is told so, and nothing of it is imported', async () => {
  const uploads = app.app.get(ImportUploads);
  const id = randomUUID();
  async function* content() {
    yield Buffer.from('externalId,email,firstName,lastName\n');
    await app.imports.cancel(id);
    yield Buffer.from('p-1,p-1@example.org,Pia,One\n');
  }
  async function* files() {
    yield { name: 'p.csv', field: 'providers', mediaType: 'text/csv', content: content() };
  }
  const request = { kind: 'providers', mode: 'upsert', dryRun: false, idSystems: [], createdBy: 'test' } as const;
  const sent = uploads.create(id, { ...request, idSystems: [] }, files());
  await expect(sent).rejects.toMatchObject({ status: 409, type: 'import-cancelled' });
  await app.steps.countAll();
  expect(await app.imports.show(id)).toMatchObject({ state: 'cancelled', counts: { total: 0 } });
  expect((await app.imports.show(id)).finishedAt).not.toBeNull();
});
