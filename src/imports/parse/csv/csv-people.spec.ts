import { readAll } from '../read-all.spec-support.js';
import type { FileKind, ReadOptions, ReadRow } from '../row/import-row.js';
import { UnreadableFile } from '../row/rejection.js';

const csv = (file: string | Buffer, kind: FileKind = 'clients', options: Partial<ReadOptions> = {}) =>
  readAll(file, { format: 'csv', kind, ...options });

const refusal = async (file: string | Buffer, kind: FileKind = 'clients') => {
  const fault = await csv(file, kind).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(UnreadableFile);
  return fault as UnreadableFile;
};

/** People as they are, gone ones by their id, and rejected ones as line, code and field. */
const people = (rows: ReadRow[]) =>
  rows.map((row) => {
    if (row.is === 'person') return row.person;
    return row.is === 'rejected' ? [row.line, row.code, row.field] : `${row.is} ${row.externalId}`;
  });
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
    ['line ends of an old Mac', 'externalId,email,firstName,lastName,providers\rc-1,ann@example.org,Ann,Roe,p-1|p-2\r'],
    [
      'blank lines',
      '\n\nexternalId,email,firstName,lastName,providers\n\n,,,,\nc-1,ann@example.org,Ann,Roe,p-1|p-2\n\n',
    ],
    ['pipe', 'externalId|email|firstName|lastName|providers\nc-1|ann@example.org|Ann|Roe|"p-1|p-2"\n'],
    ['sep=;', 'sep=;\r\nexternalId;email;firstName;lastName;providers\r\nc-1;ann@example.org;Ann;Roe;p-1|p-2\r\n'],
    [
      'a rare delimiter that it declares',
      'sep=^\nexternalId^email^firstName^lastName^providers\nc-1^ann@example.org^Ann^Roe^p-1|p-2',
    ],
    ['titles above its header', `Patients\nExported,2026-11-01\n\n${HEAD}c-1,ann@example.org,Ann,Roe,p-1|p-2\n`],
    [
      'a header of several lines',
      'externalId,email,"First\nName","Last\nName",providers\nc-1,ann@example.org,Ann,Roe,p-1|p-2\n',
    ],
    ['one comma too many in its header', `${HEAD.trim()},\nc-1,ann@example.org,Ann,Roe,p-1|p-2\n`],
    ['its header again', `${HEAD}c-1,ann@example.org,Ann,Roe,p-1|p-2\n${HEAD}`],
    ['its header again, padded', `${HEAD}c-1,ann@example.org,Ann,Roe,p-1|p-2\n${HEAD.trim()},,\n`],
    ['blanks and surplus empty cells', `${HEAD} c-1 , ann@example.org,Ann , Roe, p-1 | p-2 |,,\n`],
    [
      'lines of totals',
      `${HEAD}c-1,ann@example.org,Ann,Roe,p-1|p-2\nSubtotal:,,,,\nGrand Total,1,,\n,total,12,-,\n,,,TOTALS,\n`,
    ],
  ])('is read with %s', async (_, file) => {
    expect(people((await csv(file)).rows)).toEqual([ann]);
  });

  it.each(['utf16le', 'utf16be'])('is read as %s with a byte-order mark', async (encoding) => {
    const bytes = Buffer.from(`\ufeff${HEAD}c-1,ann@example.org,Ann,Roe,p-1|p-2\r\n`, 'utf16le');
    if (encoding === 'utf16be') bytes.swap16();
    expect(people((await csv(bytes)).rows)).toEqual([ann]);
  });

  it('may contain a blank row of several lines', async () => {
    const { rows } = await csv(`${HEAD}"\n\n",,,,\nc-1,,Ann,Roe,p-1\n`);
    expect(rows).toMatchObject([{ line: 5, is: 'person' }]);
  });

  it('may have content in unnamed columns at the end', async () => {
    const { rows, mapping } = await csv('id,first,last,,\nc-1,Ann,Roe,note,\nc-2,Bea,Roe\nc-3,Cy,Roe,a,b,c\n');
    expect(mapping?.columns.map(({ name }) => name)).toEqual(['id', 'first', 'last', 'Column 4', 'Column 5']);
    expect(people(rows)).toMatchObject([{ externalId: 'c-1' }, { externalId: 'c-2' }, [4, 'cell-count', undefined]]);
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

  it('contains both kinds if a column names the kind', async () => {
    const file = `kind,${HEAD}provider,p-1,ann@example.org,Ann,Roe,\nclient,c-1,,Bea,Doe,p-1\npet,c-2,,Rex,Doe,p-1\n`;
    expect(people((await csv(file, 'both')).rows)).toMatchObject([
      { kind: 'provider' },
      { kind: 'client', providers: ['p-1'] },
      [4, 'wrong-type', 'kind'],
    ]);
    expect(people((await csv(file, 'clients')).rows)).toMatchObject(Array(3).fill({ kind: 'client' }));
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
      [8, 'line-break', 'firstName'],
      [11, 'missing-field', 'lastName'],
    ]);
    expect(rows[1]).toMatchObject({ externalId: 'c-2', hint: expect.not.stringContaining('no mail') });
  });

  it('a rejected row keeps the texts of its fields as they are written', async () => {
    const { rows } = await csv(`Room,${HEAD}7,c-1,no mail,Ann,Roe,p-1 |p-2\n`);
    expect(rows[0]).toMatchObject({
      kind: 'client',
      cells: { externalId: 'c-1', email: 'no mail', firstName: 'Ann', lastName: 'Roe', providers: 'p-1 |p-2' },
    });
    expect((await csv(`${HEAD}c-6,"Fay,Roe\n`)).rows[0]).toMatchObject({ code: 'bad-quote', cells: {} });
  });

  it('a row whose cells do not fit the header has no id', async () => {
    const { rows } = await csv(`${HEAD}"Roe, c-9,",c-1,,Ann,Roe,p-1\nc-2,,Ann\nc-3,,Ann,Roe,p-1,x\n`);
    expect(people(rows)).toEqual([2, 3, 4].map((line) => [line, 'cell-count', undefined]));
    for (const row of rows) expect(row).not.toHaveProperty('externalId');
  });

  it('does not repeat an id that cannot be stored or shown', async () => {
    const { rows } = await csv(`${HEAD}c\u0000,,Ann,Roe,p-1\n`);
    expect(rows[0]).toMatchObject({ code: 'bad-character' });
    expect(rows[0]).not.toHaveProperty('externalId');
  });

  it('ids in scientific notation are rejected, because they lost digits', async () => {
    const { rows } = await csv(`${HEAD}1.23E+15,,Ann,Roe,\n"1,23e+15",,Ann,Roe,\n12E,,Ann,Roe,2E+07\n1E5,,Ann,Roe,\n`);
    expect(people(rows)).toMatchObject([
      [2, 'scientific-id', 'externalId'],
      [3, 'scientific-id', 'externalId'],
      [4, 'scientific-id', 'providers'],
      { externalId: '1E5' },
    ]);
    expect(rows[0]).not.toHaveProperty('externalId');
  });

  it('links an existing platform user by its UUID', async () => {
    const id = 'ABCDEF01-2345-6789-abcd-ef0123456789';
    const head = 'id,first,last,Platform User ID\n';
    const { rows } = await csv(`${head}1,Ann,Roe,${id}\n2,Bea,Roe,n/a\n3,Cy,Roe,7\n`);
    expect(people(rows)).toMatchObject([
      { platformUserId: id },
      expect.not.objectContaining({ platformUserId: expect.anything() }),
      [4, 'bad-platform-user-id', 'platformUserId'],
    ]);
  });

  it('rows and cells over the limit are rejected, and reading continues', async () => {
    const file = `${HEAD}c-1,,${'A'.repeat(300)},Roe,p-1\nc-2,,${'B'.repeat(70)},Roe,p-1\nc-3,,Cy,Roe,p-1\n`;
    const { rows } = await csv(file, 'clients', { limits: { row: 200, cell: 64 } });
    expect(people(rows)).toMatchObject([
      [2, 'row-too-large', undefined],
      [3, 'cell-too-large', 'firstName'],
      { externalId: 'c-3' },
    ]);
  });

  it('ignored columns may contain large cells', async () => {
    const file = `Photo,${HEAD}${'x'.repeat(70)},c-1,,Ann,Roe,p-1\n`;
    expect(people((await csv(file, 'clients', { limits: { row: 200, cell: 64 } })).rows)).toMatchObject([
      { externalId: 'c-1' },
    ]);
  });

  it('mentions the cells with line breaks of a whole population', async () => {
    const file = `${HEAD.trim()},Note\nc-1,,Ann,Roe,p-1,"a\nc-2,,Bea"\n"c\r3",,"C\ny",Roe,p-1,\n`;
    expect((await csv(file, 'clients', { whole: true })).mentions).toEqual(['a\nc-2,,Bea', 'c\r3', 'C\ny']);
    expect((await csv(file)).mentions).toEqual([]);
  });

  it.each([
    ['nothing', '', 'empty-file', 1],
    ['blanks only', '\n \n', 'empty-file', 1],
    ['a person in its first line', 'c-1,ann@example.org,Ann,Roe\n', 'missing-column', 1],
    ['people only', 'c-1,Ann,Roe\nc-2,Bea,Roe\n', 'missing-column', 1],
    ['no last name', '\nid,first name,email\n1,Ann,a@example.org', 'missing-column', 2],
    ['too many columns', `id,first,last${',x'.repeat(1000)}\n`, 'bad-header', 1],
    ['too many characters in its header', `id,first,last,${'x'.repeat(70_000)}\n`, 'bad-header', 1],
    ['people above its header', `c-1,Ann,Roe,x\n${HEAD}`, 'missing-column', 1],
    ['an open quote in its header', 'id,"first,last\n1,a,b\n', 'bad-header', 1],
    ['no column that names the kinds', `${HEAD}1,,Ann,Roe,\n`, 'missing-column', 1, 'both'],
  ])('is refused with %s', async (_, file, code, line, kind = 'clients') => {
    expect(await refusal(file, kind as FileKind)).toMatchObject({ code, line });
  });

  it('a missing column is named with those that were found, never with a person', async () => {
    expect((await refusal('id,first name,Room\n1,Ann,12\n')).hint).toBe(
      'No column is known to be lastName. The file has the columns id, first name, Room. Understood names: lastName (lastName, Last Name, Surname).',
    );
    expect((await refusal('c-1,Ann,Roe\n')).message).not.toMatch(/Ann|Roe|c-1/);
  });
});

describe('emails', () => {
  const head = 'Client ID,First Name,Last Name,Work Email,Email,Home Email\n';

  it('of clients are read at home first, of providers at work, and from the next column if a cell is empty', async () => {
    const file = `${head}1,Ann,Ash,w@x.org,e@x.org,h@x.org\n2,Bea,Ash,w@x.org,e@x.org,\n3,Cy,Ash,w@x.org,none,n/a\n`;
    expect(people((await csv(file)).rows)).toMatchObject([
      { email: 'h@x.org' },
      { email: 'e@x.org' },
      { email: 'w@x.org' },
    ]);
    const providers = await csv(file.replace('Client ID', 'Provider ID'), 'providers');
    expect(people(providers.rows)).toMatchObject(Array(3).fill({ email: 'w@x.org' }));
  });

  it('are not read from direct addresses or of a provider', async () => {
    const file = 'id,first,last,email_direct,Provider Email\n1,Ann,Ash,a@direct.example,p@example.org\n';
    expect(people((await csv(file)).rows)).toEqual([
      { kind: 'client', externalId: '1', firstName: 'Ann', lastName: 'Ash' },
    ]);
  });

  it('field case email-placeholder: placeholders are empty, and the first of two addresses counts', async () => {
    const cells = [
      ...['none', 'N/A', 'declined', 'NULL', '-', 'fay@example.org; fay.work@example.com'],
      ...['"""Gus"" <gus@example.org>"', 'mailto:hal@example.org', 'noemail@noemail.com', 'nobody at example'],
    ];
    const rows = cells.map((cell, at) => `c${at + 1},Ann,Ash,${cell},P\n`);
    const read = people((await csv(`Client ID,First Name,Last Name,Email,Therapist\n${rows.join('')}`)).rows);
    const emails = read.map((person) => (typeof person === 'object' && 'email' in person ? person.email : person));
    expect(emails.slice(5)).toEqual([
      ...['fay@example.org', 'gus@example.org', 'hal@example.org', 'noemail@noemail.com'],
      [11, 'bad-email', 'email'],
    ]);
    for (const person of read.slice(0, 5)) expect(person).not.toHaveProperty('email');
  });
});

describe('people who are gone', () => {
  it.each([
    ['Status', ['Inactive', ' not  active ', 'DECEASED', 'Duplicate', 'merged'], ['Active', 'Patient', '', 'open']],
    ['Client Status', ['discharged', 'Former'], ['active']],
    ['Active', ['no', 'N', 'false', '0', 'inactive'], ['yes', '1', 'true', '']],
    ['is_active', ['0'], ['1']],
    ['Inactive', ['yes', 'Y', 'true', '1', 'x'], ['N', '0', '']],
    ['Deleted', ['1'], ['0', '2026-01-01']],
    ['Deceased', ['Yes', '2020-01-31', '1/2/2020', '31. Jan 2020', '20200131'], ['No', '', '0000-00-00', 'unknown']],
  ])('column %s', async (column, gone, present) => {
    const file = (cells: string[]) => `id,first,last,${column}\n${cells.map((cell) => `1,Ann,Ash,${cell}\n`).join('')}`;
    const { rows, mapping } = await csv(file(gone));
    expect(rows.map(({ is }) => is)).toEqual(gone.map(() => 'gone'));
    expect(mapping?.columns[3]).toMatchObject({ name: column, field: 'status' });
    expect((await csv(file(present))).rows.map(({ is }) => is)).toEqual(present.map(() => 'person'));
  });

  it('need only a valid id', async () => {
    const { rows } = await csv('id,first,last,email,Status\n1,,,no mail,closed\n,,,,closed\n');
    expect(rows).toMatchObject([
      { is: 'gone', kind: 'client', externalId: '1', line: 2 },
      { is: 'rejected', code: 'missing-field', field: 'externalId' },
    ]);
  });

  it('the mapping lists the words that were applied', async () => {
    const words = async (columns: string) => (await csv(`id,first,last,${columns}\n`)).mapping?.goneWords ?? [];
    expect(await words('Room')).toEqual([]);
    expect(await words('Status')).toContain('inactive');
    expect((await words('Active,Deceased')).slice(-2)).toEqual([
      'no/n/false/0 in Active',
      'yes/y/true/1/x/a date in Deceased',
    ]);
  });
});

describe('providers of clients', () => {
  it('are separated by a bar; placeholders count for nothing', async () => {
    const { rows } = await csv(`${HEAD}1,,Ann,Ash,p-1 | N/A|p-2|\n2,,Ann,Ash,none\n`);
    expect(people(rows)).toMatchObject([{ providers: ['p-1', 'p-2'] }, { providers: [] }]);
  });

  it('field case provider-and-id: a column whose name ends in id wins', async () => {
    const file = 'Patient ID,First Name,Last Name,Primary Provider,Primary Provider ID\n101,Ann,Ash,"Ng, Pat",P\n';
    expect(people((await csv(file)).rows)).toMatchObject([{ externalId: '101', providers: ['P'] }]);
  });

  it('field cases provider-names and default-unknown: texts are passed on as they are', async () => {
    const names = ['"Smith, Jane LCSW"', 'jane@x.org', '"7, 8"', '7;8', '7.0'];
    const rows = names.map((name) => `c1,Ann,Ash,${name}\n`).join('');
    const read = people((await csv(`Client ID,First Name,Last Name,Clinician\n${rows}c2,Bob,Bay,\n`)).rows);
    expect(read).toMatchObject([
      ...names.map((name) => ({ providers: [name.replaceAll('"', '')] })),
      { providers: [] },
    ]);
  });
});

describe('the file of rejected rows', () => {
  const REJECTED = 'kind,externalId,email,firstName,lastName,providers,platformUserId,file,line,code,hint';
  const comesBack = (lines: string, kind: FileKind = 'clients') => csv(`\ufeff${REJECTED}\r\n${lines}`, kind);

  it('is recognized by its columns, and its kinds decide', async () => {
    const file = 'provider,p-1,a@x.org,Ann,Ash,,,f.csv,7,,\r\nclient,c-1,,Bea,Ash,p-1|p-2,,f.csv,8,,Correct it.\r\n';
    const { rows, mapping } = await comesBack(file, 'providers');
    expect(people(rows)).toMatchObject([{ kind: 'provider' }, { kind: 'client', providers: ['p-1', 'p-2'] }]);
    expect(mapping).toMatchObject({ isRejectedCsv: true, question: null });
    expect(mapping?.columns.map(({ field }) => field)).toEqual(REJECTED.split(',').slice(0, 7));
  });

  it('may have lost its empty cells, or got more, in a spreadsheet', async () => {
    const padded = REJECTED.replace(/$/, ',,');
    const { rows, mapping } = await csv(`${padded}\nclient,c-1,,Bea,Ash\nclient,c-2,,Bea,Ash,,,f.csv,8,,,,,\n`);
    expect(mapping?.isRejectedCsv).toBe(true);
    expect(people(rows)).toMatchObject([{ externalId: 'c-1' }, { externalId: 'c-2' }]);
  });

  it('a row with a code is rejected again until the code is cleared', async () => {
    const { rows } = await comesBack('client,c-1,,Ann,Ash,p-1,,f.csv,7,bad-email,Correct it.\n');
    expect(rows).toMatchObject([
      {
        ...{ code: 'not-corrected', field: 'code', hint: 'Clear the code cell once the row is right.' },
        ...{ kind: 'client', externalId: 'c-1', cells: { firstName: 'Ann', providers: 'p-1' } },
      },
    ]);
  });

  it('guards against formulas are removed', async () => {
    const { rows } = await comesBack("client,'=c-1,,'-Ann,O'Hara,,,f.csv,7,,\n");
    expect(people(rows)).toMatchObject([{ externalId: '=c-1', firstName: '-Ann', lastName: "O'Hara" }]);
  });

  it('a client without providers keeps those that other resources name', async () => {
    const { rows } = await comesBack('client,c-1,,Ann,Ash,,,f.csv,7,,\n');
    expect(people(rows)[0]).not.toHaveProperty('providers');
  });

  it('other columns make it an ordinary file', async () => {
    const { mapping } = await csv(`${REJECTED},Room\nclient,c-1,,Ann,Ash,,,f.csv,7,x,,\n`, 'both');
    expect(mapping?.isRejectedCsv).toBe(false);
  });
});

describe('a file that links people without naming them', () => {
  const id = '0190c9d2-0000-4000-8000-000000000001';

  it('shows a part of each person', async () => {
    const { rows } = await csv(
      `kind,externalId,platformUserId\nprovider,p-1,${id}\nclient,'=c-1,\nclient,c-2,7\n`,
      'both',
    );
    expect(rows).toMatchObject([
      { isPartial: true, person: { kind: 'provider', externalId: 'p-1', platformUserId: id } },
      { isPartial: true, person: { kind: 'client', externalId: '=c-1' } },
      { code: 'bad-platform-user-id' },
    ]);
  });

  it('needs no kind if all are of one kind, and keeps what looks like a guard', async () => {
    const { rows } = await csv(`id,platformUserId\n'=p-1,${id}\n`, 'providers');
    expect(rows).toMatchObject([{ isPartial: true, person: { kind: 'provider', externalId: "'=p-1" } }]);
  });

  it('needs both names if it has one', async () => {
    const fault = await refusal(`id,firstName,platformUserId\n1,Ann,${id}\n`);
    expect(fault.hint).toContain('No column is known to be lastName.');
  });

  it('may be a corrected row of the file of rejected rows', async () => {
    const head = 'kind,externalId,email,firstName,lastName,providers,platformUserId,file,line,code,hint';
    const { rows } = await csv(`${head}\nclient,c-1,,,,,${id},f.csv,7,,\nclient,c-2,,,,,,f.csv,8,,\n`);
    expect(rows).toMatchObject([{ isPartial: true }, { code: 'missing-field' }]);
  });
});
