import { PeopleService } from '../src/people/api/people.service.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv } from './support/bulk.js';
import { freshDatabase, query, type TestDatabase } from './support/databases.js';
import { type ImportsApp, startImports } from './support/imports-app.js';

/** As an EHR writes it that has no id in this column. */
const NAME = 'Dr. Anna Meier';

let home: TestDatabase;
let app: ImportsApp;

beforeAll(async () => {
  home = await freshDatabase();
  app = await startImports(home.url);
});

afterAll(async () => {
  await app.close();
  await home.drop();
});

const put = (externalId: string) =>
  app.app
    .get(PeopleService)
    .put({ kind: 'provider', externalId }, { email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Roe' });

const lists = async (id: string): Promise<[string, string[]][]> => {
  const rows = await query<{ externalId: string; providers: string[] }>(
    home,
    `SELECT external_id AS "externalId", providers FROM import_rows WHERE import_id = '${id}' AND kind = 'client' ORDER BY row_no`,
  );
  return rows.map(({ externalId, providers }) => [externalId, providers]);
};

/** The providers and codes of the file of rejected rows. */
const rejected = async (id: string) => {
  const headers = { authorization: `Bearer ${app.key}` };
  const text = await (await fetch(`${app.url}/v1/imports/${id}/rejected.csv`, { headers })).text();
  return text
    .trim()
    .split('\r\n')
    .slice(1)
    .map((line) => [line.split(',')[4], line.split(',')[6]]);
};

// More providers than one batch of an upload holds, and than are hashed at once.
test('a cell that names no known provider is nowhere in the clear, and the plan knows providers who came later', async () => {
  await put('p-known');
  const id = await app.stage({}, [
    clientsCsv([
      clientLine('c-1', ['p-known', 'q-2100']),
      clientLine('c-2', ['p-late', 'p-known']),
      clientLine('c-3', [NAME]),
      clientLine('c-4', ['p-known', NAME]),
      clientLine('c-1', [NAME]),
    ]),
    providersCsv(many(2_100, 'q').map((one) => providerLine(one))),
  ]);
  const staged = await lists(id);
  expect(staged[0]?.[1]).toEqual(['p-known', expect.stringMatching(/^ \S{44}$/)]);
  expect(staged.flatMap(([, providers]) => providers.filter((one) => !one.startsWith(' ')))).toEqual(
    Array(3).fill('p-known'),
  );
  await put('p-late');
  await app.steps.prepareAll();
  const planned = await lists(id);
  expect(planned.slice(0, 2)).toEqual([
    ['c-1', ['p-known', 'q-2100']],
    ['c-2', ['p-late', 'p-known']],
  ]);
  expect(JSON.stringify(planned)).not.toContain(NAME);
  expect((await app.imports.show(id)).counts).toMatchObject({ total: 2_105, pending: 2_102, rejected: 3 });
  expect(await rejected(id)).toEqual([
    [NAME, 'unknown-provider'],
    [`p-known|${NAME}`, 'unknown-provider'],
    [NAME, 'duplicate-id'],
  ]);
  await query(home, `DELETE FROM import_raw_rows`);
  expect(await rejected(id)).toEqual([
    ['', 'unknown-provider'],
    ['p-known', 'unknown-provider'],
    ['', 'duplicate-id'],
  ]);
});

test('a default provider who is not known is shown where the cell was empty', async () => {
  const id = await app.stage({ defaultProvider: 'p-none' }, [clientsCsv([clientLine('c-9', [])])]);
  await app.steps.prepareAll();
  expect(await rejected(id)).toEqual([['p-none', 'unknown-provider']]);
});
