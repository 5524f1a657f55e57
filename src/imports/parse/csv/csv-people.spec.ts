import { readAll } from '../read-all.spec-support.js';
import type { ImportKind, ReadRow } from '../row/import-row.js';
import { UnreadableFile } from '../row/rejection.js';

const csv = (file: string | Buffer, kind: ImportKind = 'clients', limits?: { row: number; cell: number }) =>
  readAll(file, { format: 'csv', kind, limits });

const refusal = async (file: string | Buffer, kind: ImportKind = 'clients') => {
  const fault = await csv(file, kind).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(UnreadableFile);
  return fault as UnreadableFile;
};

const people = (rows: ReadRow[]) => rows.map((row) => (row.ok ? row.person : [row.line, row.code, row.field]));
const HEAD = 'externalId,email,firstName,lastName,providers\n';
const ann = {
  kind: 'client',
  externalId: 'c-1',
  email: 'ann@example.org',
  firstName: 'Ann',
  lastName: 'Roe',
  providers: ['p-1', 'p-2'],
};

describe('a CSV file of people', () => {
  it.each([
    ['comma', 'externalId,email,firstName,lastName,providers\nc-1,ann@example.org,Ann,Roe,p-1|p-2\n'],
    ['semicolon and CRLF', 'externalId;email;firstName;lastName;providers\r\nc-1;ann@example.org;Ann;Roe;p-1|p-2\r\n'],
    [
      'tab, no last line end',
      'externalId\temail\tfirstName\tlastName\tproviders\nc-1\tann@example.org\tAnn\tRoe\tp-1|p-2',
    ],
    ['byte-order mark', '\ufeffexternalId,email,firstName,lastName,providers\nc-1,ann@example.org,Ann,Roe,p-1|p-2'],
    [
      'quotes',
      '"externalId","email","firstName","lastName","providers"\n"c-1","ann@example.org","Ann","Roe","p-1|p-2"',
    ],
    ['other case and order', 'PROVIDERS,LASTNAME,FIRSTNAME,EMAIL,EXTERNALID\np-1|p-2,Roe,Ann,ann@example.org,c-1'],
    ['synonyms', 'MRN;First name;Surname;E-Mail Address;Therapist\nc-1;Ann;Roe;ann@example.org;p-1|p-2'],
    [
      'subjects',
      'Patient ID,patient_given_name,Patient Family Name,email,Primary Provider ID\nc-1,Ann,Roe,ann@example.org,p-1|p-2',
    ],
    ['an old Mac', 'externalId,email,firstName,lastName,providers\rc-1,ann@example.org,Ann,Roe,p-1|p-2\r'],
    [
      'blank lines',
      '\n\nexternalId,email,firstName,lastName,providers\n\n,,,,\nc-1,ann@example.org,Ann,Roe,p-1|p-2\n\n',
    ],
    ['pipe', 'externalId|email|firstName|lastName|providers\nc-1|ann@example.org|Ann|Roe|"p-1|p-2"\n'],
    ['sep=;', 'sep=;\r\nexternalId;email;firstName;lastName;providers\r\nc-1;ann@example.org;Ann;Roe;p-1|p-2\r\n'],
    [
      'an odd delimiter that it says',
      'sep=^\nexternalId^email^firstName^lastName^providers\nc-1^ann@example.org^Ann^Roe^p-1|p-2',
    ],
    [
      'lines above its header',
      `Patients of the clinic\nExported,2026-11-01\n\n${HEAD}c-1,ann@example.org,Ann,Roe,p-1|p-2\n`,
    ],
    ['one comma too many in its header', `${HEAD.trim()},\nc-1,ann@example.org,Ann,Roe,p-1|p-2\n`],
    ['its header once more', `${HEAD}c-1,ann@example.org,Ann,Roe,p-1|p-2\n${HEAD}`],
    ['its header once more, padded', `${HEAD}c-1,ann@example.org,Ann,Roe,p-1|p-2\n${HEAD.trim()},,\n`],
    ['blanks and surplus empty cells', `${HEAD} c-1 , ann@example.org,Ann , Roe, p-1 | p-2 |,,\n`],
  ])('is read with %s', async (_, file) => {
    expect(people((await csv(file)).rows)).toEqual([ann]);
  });

  it('a blank row may cover several lines', async () => {
    const { rows } = await csv(`${HEAD}"\n\n",,,,\nc-1,,Ann,Roe,p-1\n`);
    expect(rows).toMatchObject([{ line: 5, ok: true }]);
  });

  it('what stands in unnamed columns at the end is kept, and ignored', async () => {
    const { columns, rows } = await csv('id,first,last,,\nc-1,Ann,Roe,note,\nc-2,Bea,Roe\nc-3,Cy,Roe,a,b,c\n');
    expect(columns).toEqual(['id', 'first', 'last', '', '']);
    expect(rows.map((row) => (row.ok ? row.raw : row.code))).toEqual([
      '["c-1","Ann","Roe","note",""]',
      '["c-2","Bea","Roe"]',
      'cell-count',
    ]);
  });

  it('keeps columns that it does not know, and ignores them', async () => {
    const { columns, rows } = await csv('id,MRN,first,last,Room\n7,c-1,Ann,Roe,12b\n');
    expect(columns).toEqual(['id', 'MRN', 'first', 'last', 'Room']);
    expect(rows).toMatchObject([{ ok: true, person: { externalId: 'c-1' }, raw: '["7","c-1","Ann","Roe","12b"]' }]);
  });

  it('a therapist column is the id in a file of providers', async () => {
    const { rows } = await csv(
      'Therapist ID,Forename,Last Name,Work e-mail\np-1,Ann,Roe,ann@example.org\n',
      'providers',
    );
    expect(people(rows)).toEqual([
      { kind: 'provider', externalId: 'p-1', email: 'ann@example.org', firstName: 'Ann', lastName: 'Roe' },
    ]);
  });

  it('a column kind tells both kinds apart in one file', async () => {
    const { rows } = await csv(
      `kind,${HEAD}provider,p-1,ann@example.org,Ann,Roe,\nclient,c-1,,Bea,Doe,p-1\npet,c-2,,Rex,Doe,p-1\n`,
      'fhir',
    );
    expect(people(rows)).toMatchObject([
      { kind: 'provider' },
      { kind: 'client', providers: ['p-1'] },
      [4, 'wrong-type', 'kind'],
    ]);
  });

  it('one bad row costs one row, with its line, field, code and hint', async () => {
    const file = `${HEAD}c-1,,Ann,Roe,p-1\nc-2,no mail,Bea,Roe,p-1\nc-3,,Cy\nc-4,,Dee,Roe,p-1,x\n,,Eve,Roe,p-1\nc-6,"Fay,Roe\nc-7,,"Gil\n\nbert",Roe,p-1\nc-8,,Hal,,p-1\n`;
    const { rows } = await csv(file);
    expect(people(rows)).toMatchObject([
      { externalId: 'c-1' },
      [3, 'bad-email', 'email'],
      [4, 'cell-count', undefined],
      [5, 'cell-count', undefined],
      [6, 'missing-field', 'externalId'],
      [7, 'bad-quote', undefined],
      [8, 'bad-character', 'firstName'],
      [11, 'missing-field', 'lastName'],
    ]);
    expect(rows[1]).toMatchObject({ externalId: 'c-2', hint: expect.not.stringContaining('no mail') });
  });

  it('a row whose cells do not fit the header names nobody, whatever stands under the id', async () => {
    const { rows } = await csv(`${HEAD}"Roe, c-9,",c-1,,Ann,Roe,p-1\nc-2,,Ann\nc-3,,Ann,Roe,p-1,x\n`);
    expect(rows.map((row) => !row.ok && [row.code, row.externalId])).toEqual(Array(3).fill(['cell-count', undefined]));
  });

  it('an id that could not be stored or shown is not repeated', async () => {
    const { rows } = await csv(`${HEAD}c\u0000,,Ann,Roe,p-1\n`);
    expect(rows[0]).toMatchObject({ code: 'bad-character' });
    expect(rows[0]).not.toHaveProperty('externalId');
  });

  it('rows and cells over the limit are rejected, and reading goes on', async () => {
    const file = `${HEAD}c-1,,${'A'.repeat(300)},Roe,p-1\nc-2,,${'B'.repeat(70)},Roe,p-1\nc-3,,Cy,Roe,p-1\n`;
    const { rows } = await csv(file, 'clients', { row: 200, cell: 64 });
    expect(people(rows)).toMatchObject([
      [2, 'row-too-large', undefined],
      [3, 'cell-too-large', 'firstName'],
      { externalId: 'c-3' },
    ]);
  });

  it.each([
    ['nothing', '', 'empty-file', 1],
    ['blanks only', '\n \n', 'empty-file', 1],
    ['no header, since its first line is a person', 'c-1,ann@example.org,Ann,Roe\n', 'missing-column', 1],
    ['no last name', '\nid,first name,email\n', 'missing-column', 2],
    ['two emails', 'id,first,last,email,E-Mail\n', 'duplicate-column', 1],
    ['more columns than anybody needs', `id,first,last${',x'.repeat(1000)}\n`, 'bad-header', 1],
    ['a header of more characters than anybody needs', `id,first,last,${'x'.repeat(70_000)}\n`, 'bad-header', 1],
    ['people of both kinds', `kind,${HEAD}provider,p-1,a@example.org,Ann,Roe,\n`, 'wrong-kind', 1],
    ['people above its header', `c-1,Ann,Roe,x\n${HEAD}`, 'missing-column', 1],
    ['an open quote in its header', 'id,"first,last\n1,a,b\n', 'bad-header', 1],
  ])('is refused when it has %s', async (_, file, code, line) => {
    expect(await refusal(file)).toMatchObject({ code, line });
  });

  it('a missing column is named beside those that were found, never beside a person', async () => {
    expect((await refusal('id,first name,Room\n')).hint).toBe(
      'The header has no column for lastName. Found: id, first name, Room.',
    );
    expect((await refusal('id,first,last\n', 'providers')).hint).toContain('no column for email');
    expect((await refusal('c-1,Ann,Roe\n')).message).not.toMatch(/Ann|Roe|c-1/);
  });
});
