import { collect, readAll } from '../read-all.spec-support.js';
import { readStored } from '../read-people.js';
import type { ChosenColumns, FileKind, StoredRecord } from '../row/import-row.js';
import { UnreadableFile } from '../row/rejection.js';
import { ignoredProviderColumns } from './column-names.js';
import { columnNames, maskedExample } from './columns.js';

const read = (file: string, kind: FileKind = 'clients', columns?: ChosenColumns) =>
  readAll(file, { format: 'csv', kind, ...(columns && { columns }) });

const mapped = async (...args: Parameters<typeof read>) => {
  const { mapping } = await read(...args);
  if (!mapping) throw new Error('no mapping');
  return mapping;
};

const fieldsOf = async (...args: Parameters<typeof read>) =>
  Object.fromEntries((await mapped(...args)).columns.map(({ name, field }) => [name, field]));

const refusal = async (...args: Parameters<typeof read>) => {
  const fault = await read(...args).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(UnreadableFile);
  return fault as UnreadableFile;
};

const stored = async function* (records: StoredRecord[]) {
  for (const record of records) yield [record];
};

describe('the mapping of a CSV file', () => {
  it('shows each column with its field and a masked example', async () => {
    const file = 'Room,MRN,First,Last,E-Mail,\n,c-1,Änne,Roe,a1@x.org,\n12b,c-2,Bea,Roe,,\n';
    expect(await mapped(file)).toEqual({
      columns: [
        { name: 'Room', field: null, example: '99x' },
        { name: 'MRN', field: 'externalId', example: 'x-9' },
        { name: 'First', field: 'firstName', example: 'xxxx' },
        { name: 'Last', field: 'lastName', example: 'xxx' },
        { name: 'E-Mail', field: 'email', example: 'x9@x.xxx' },
      ],
      idReason: 'The only column with a known name for an id is "MRN".',
      question: null,
      goneWords: [],
      isRejectedCsv: false,
    });
  });

  it('of providers ignores the column of providers', async () => {
    const file = 'externalId,email,firstName,lastName,providers\n';
    expect(await fieldsOf(file, 'providers')).toMatchObject({ providers: null });
  });

  it('prefers the better known of two names', async () => {
    const file = 'id,Given Name,First Name,Last Name,Family Name\n';
    expect(await fieldsOf(file)).toMatchObject({ 'Given Name': null, 'First Name': 'firstName' });
  });

  it('asks between equally good columns', async () => {
    const file = 'id,First Name,first_name,Last Name,Therapist,Clinician\n1,Ann,Anna,Ash,P,Q\n';
    const { question, columns } = await mapped(file);
    expect(question).toEqual({
      fields: ['firstName', 'providers'],
      detail:
        'Two columns could be firstName: "First Name" and "first_name". Choose one. Two columns could be providers: "Therapist" and "Clinician". Choose one.',
    });
    expect(columns.map(({ field }) => field)).toEqual(['externalId', null, null, 'lastName', null, null]);
  });

  it('asks for the columns of required fields that some column could contain', async () => {
    const file = 'NR,Nachname,Vorname,E-Mail\n1,Öztürk,Änne,a@example.org\n';
    expect((await mapped(file)).question).toEqual({
      fields: ['externalId', 'firstName', 'lastName'],
      detail: 'No column is known to be externalId, firstName or lastName. Choose the columns.',
    });
    const providers = 'ID,First,Last,Kontakt\n1,Ann,Ash,a@example.org\n';
    expect((await mapped(providers, 'providers')).question?.fields).toEqual(['email']);
  });

  it.each([
    ['no column with an @', 'ID,First,Last,Telefon\n1,Ann,Ash,12\n', 'email'],
    ['one column for two names', 'ID,email,Name\n1,a@x.org,Ann Ash\n', 'firstName or lastName'],
    [
      'an id that is mostly empty',
      'NR,First,Last,email\n1,Ann,Ash,a@x.org\n,Bea,B,b@x.org\n,C,D,c@x.org\n',
      'externalId',
    ],
    ['no rows', 'ID,First,Nachname,email\n', 'lastName'],
  ])('refuses %s', async (_, file, fields) => {
    const fault = await refusal(file, 'providers');
    expect(fault).toMatchObject({ code: 'missing-column', line: 1 });
    expect(fault.hint).toContain(`No column is known to be ${fields}.`);
  });

  it('judges the columns by the beginning of the file', async () => {
    const rows = '1,Ann,Ash,\n'.repeat(20_000);
    expect((await refusal(`ID,First,Last,Kontakt\n${rows}1,Ann,Ash,a@x.org\n`, 'providers')).code).toBe(
      'missing-column',
    );
  });
});

describe('the id column', () => {
  it('field case mrn-and-id: two known names are a question', async () => {
    const { question, idReason } = await mapped('Patient ID,MRN,First Name,Last Name,Provider\n101,M-1,Ann,Ash,P\n');
    expect(question).toEqual({
      fields: ['externalId'],
      detail: 'Two columns could be the id: "Patient ID" and "MRN". Choose one.',
    });
    expect(idReason).toBeNull();
  });

  it('is not a question if it has the documented name', async () => {
    const { question, idReason } = await mapped('MRN,externalId,First Name,Last Name\n');
    expect([question, idReason]).toEqual([null, '"externalId" is the documented name.']);
  });

  it('is a question if a word precedes the documented name', async () => {
    expect((await mapped('MRN,Patient External ID,First Name,Last Name\n')).question?.fields).toEqual(['externalId']);
  });

  it('is not a question if the user chose it', async () => {
    const file = 'Patient ID,MRN,First Name,Last Name,Provider\n101,M-1,Ann,Ash,P\n';
    const { mapping, rows } = await read(file, 'clients', { externalId: 'Patient ID' });
    expect(mapping).toMatchObject({ question: null, idReason: 'You chose "Patient ID".' });
    expect(rows).toMatchObject([{ person: { externalId: '101' } }]);
  });
});

describe('chosen columns', () => {
  const file = 'NR;Name;Name;;E-Mail\n1;Öztürk;Änne;x;a@example.org\n';

  it.each([
    ['names as they are shown', { externalId: 'NR', lastName: 'Name', firstName: 'Name (2)' }],
    ['names regardless of case and punctuation', { externalId: 'n-r', lastName: 'NAME', firstName: 'name 2' }],
  ])('are found by %s', async (_, columns) => {
    const { rows, mapping } = await read(file, 'clients', columns);
    expect(mapping?.question).toBeNull();
    expect(rows).toMatchObject([{ person: { externalId: '1', lastName: 'Öztürk', firstName: 'Änne' } }]);
  });

  it('replace the known columns of their field', async () => {
    const { rows, mapping } = await read('id,first,last,email,Kontakt\n1,Ann,Ash,a@x.org,k@x.org\n', 'clients', {
      email: 'Kontakt',
    });
    expect(rows).toMatchObject([{ person: { email: 'k@x.org' } }]);
    expect(mapping?.columns[3]).toMatchObject({ name: 'email', field: null });
  });

  it('may be none', async () => {
    const { rows, mapping } = await read('id,uuid,first,last,email\n1,u-1,Ann,Ash,a@x.org\n', 'clients', {
      ...{ externalId: 'id', email: '' },
    });
    expect(rows).toEqual([expect.objectContaining({ person: expect.not.objectContaining({ email: 'a@x.org' }) })]);
    expect(mapping?.columns[4]).toMatchObject({ name: 'email', field: null });
  });

  it('cannot be none for a required field', async () => {
    const { mapping } = await read('id,NR,first,last\n1,7,Ann,Ash\n', 'clients', { externalId: '' });
    expect(mapping?.question).toMatchObject({ fields: ['externalId'] });
  });

  it('identify the header', async () => {
    const { rows } = await read(`Klinik\n${file}`, 'clients', {
      externalId: 'NR',
      lastName: 'Name',
      firstName: 'Name (2)',
    });
    expect(rows).toMatchObject([{ line: 3, is: 'person' }]);
  });

  it.each([
    [
      { externalId: 'PAT_ID' },
      'The column chosen for externalId does not exist. The file has the columns NR, Name, Name (2),',
    ],
    [{ firstName: 'Name', lastName: 'name' }, 'One column is chosen for firstName and lastName. Choose two.'],
  ])('are refused: %j', async (columns, hint) => {
    const fault = await refusal(file, 'clients', columns);
    expect(fault).toMatchObject({ code: 'unknown-column', line: 1, hint: expect.stringContaining(hint) });
  });
});

test('a chosen column that is missing in a file without a header is refused without showing a person', async () => {
  const fault = await refusal('c-1,Ann,Roe\nc-2,Bea,Roe\n', 'clients', { externalId: 'ID' });
  expect(fault.hint).toBe('The column chosen for externalId does not exist. The first line must name the columns.');
});

describe('records of a file whose mapping has a question', () => {
  const file =
    'NR,Nachname,Vorname,E-Mail\n1,Roe,Ann,a@x.org\n\n"2\n",Roe,"Bea\nNR,Nachname,Vorname,E-Mail\n,,,\n3,Doe,Cy,\n';
  const columns = { externalId: 'NR', firstName: 'Vorname', lastName: 'Nachname' };

  it('are yielded instead of rows, without blank ones and repeated headers', async () => {
    const { rows, records, header } = await read(file);
    expect([rows, header]).toEqual([[], ['NR', 'Nachname', 'Vorname', 'E-Mail']]);
    expect(records).toMatchObject([{ line: 2 }, { line: 4, broken: 'bad-quote' }, { line: 5 }, { line: 8 }]);
  });

  it('give the rows of the file when they are read with the chosen columns', async () => {
    const { header, records } = await read(file);
    const options = { kind: 'clients', columns, whole: true } as const;
    const later = await collect(readStored(stored(records), header, { ...options, headerLine: 1 }));
    expect(later).toEqual(await readAll(file, { format: 'csv', ...options }));
    expect(later.rows).not.toEqual([]);
  });

  it('are yielded again while a question remains', async () => {
    const { header, records, mapping } = await read(file);
    const later = await collect(readStored(stored(records), header, { kind: 'clients', headerLine: 1 }));
    expect(later).toMatchObject({ records, mapping, rows: [] });
  });
});

test('ignoredProviderColumns names the columns that may contain providers', async () => {
  const mapping = await mapped('Patient ID,Last Name,First Name,Prim Prov,Sec Prov,Province,PCP,Email\n');
  expect(ignoredProviderColumns(mapping)).toEqual(['Prim Prov', 'Sec Prov', 'PCP']);
});

describe('columnNames', () => {
  it('are unique, short, and without control characters', () => {
    const names = columnNames([' a ', 'a', '', 'a (2)', 'b\u0000\nc', 'x'.repeat(200), 'x'.repeat(150), 'a']);
    expect(names.slice(0, 5)).toEqual(['a', 'a (2)', 'Column 3', 'a (2) (2)', 'b c']);
    expect(names.slice(5)).toEqual(['x'.repeat(100), `${'x'.repeat(96)} (2)`, 'a (3)']);
  });
});

describe('maskedExample', () => {
  it.each([
    ['Ann-Marie O’Hara', 'xxx-xxxxx x’xxxx'],
    [' +49 (0) 171 ٣ é e\u0301', '+99 (9) 999 9 x xx'],
    ['a\nb', 'x x'],
    ['1'.repeat(100), '9'.repeat(24)],
    ['', ''],
  ])('%j', (text, masked) => {
    expect(maskedExample(text)).toBe(masked);
  });
});
