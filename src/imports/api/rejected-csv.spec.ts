import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { guardFormula, unguardFormula } from '../parse/csv/rejected-cells.js';
import { readAll } from '../parse/read-all.spec-support.js';
import { rawRow } from '../parse/row/import-row.js';
import { type RejectedLine, rejectedCsv, rejectedLayout } from './rejected-csv.js';

const COLUMNS = ['MRN', 'email', 'First name', 'Surname', 'Therapist', 'Room'];

async function written(rows: RejectedLine[], columns = COLUMNS): Promise<string> {
  let text = '';
  for await (const line of rejectedCsv(columns, [rows])) text += line;
  return text;
}

const because = { line: 7, code: 'bad-email', hint: 'email is not an address.' };
const csv = { format: 'csv', kind: 'clients' } as const;
const nasty = fc.string({
  unit: fc.constantFrom('=', '+', '-', '@', "'", '"', ',', ';', '\t', '\r', '\n', ' ', 'a', 'é', '＝'),
  maxLength: 6,
});

/** As a spreadsheet of another country saves it: semicolons, all lines as wide as the widest and more, line ends of its own. */
function throughSpreadsheet(text: string): string {
  const rows: string[][] = parse(text, { bom: true, relax_column_count: true });
  const width = Math.max(...rows.map((row) => row.length)) + 2;
  const cell = (value: string) => {
    const own = value.replaceAll('\r\n', '\n');
    return /[";\n]/.test(own) ? `"${own.replaceAll('"', '""')}"` : own;
  };
  const lines = rows.map((row) => Array.from({ length: width }, (_, at) => cell(row[at] ?? '')).join(';'));
  return `\ufeff${lines.join('\r\n')}\r\n`;
}

describe('the file of rejected rows', () => {
  it('holds the original columns, then line, code, hint and a check', async () => {
    const text = await written([{ ...because, raw: rawRow(['c-1', 'no mail', 'Ann', 'Roe', 'p-1|p-2', '12 b']) }]);
    expect(text).toContain(
      '\ufeffMRN,email,First name,Surname,Therapist,Room,line,code,hint,check\r\nc-1,no mail,Ann,Roe,p-1|p-2,12 b,7,bad-email,email is not an address.,',
    );
  });

  it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', ' =1', '＝1', "'=1"])(
    '%j is no formula any more',
    (cell) => {
      expect(guardFormula(cell)).toBe(`'${cell}`);
    },
  );

  it('guards come off exactly: what had its own quote keeps it', () => {
    fc.assert(
      fc.property(nasty, (cell) => {
        expect(unguardFormula(guardFormula(cell))).toBe(cell);
        expect(guardFormula(cell)).not.toMatch(/^\s*[=+\-@＝]/);
      }),
      propertyRuns(),
    );
    expect(guardFormula("O'Hara")).toBe("O'Hara");
  });

  it('comes back as the cells that it was made of, for any columns and any cells', async () => {
    const row = fc.array(nasty, { minLength: COLUMNS.length, maxLength: COLUMNS.length });
    const extra = fc.tuple(
      nasty.filter((name) => name.trim() !== ''),
      fc.constantFrom('line', 'code', 'hint', 'x'),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 4 }), extra, async (rows, [odd, last]) => {
        const columns = [...COLUMNS.slice(0, 5), odd, last];
        const cells = rows.map((some) => [...some, 'x']);
        const text = await written(
          cells.map((some) => ({ ...because, raw: rawRow(some) })),
          columns,
        );
        const read = await readAll(text, csv);
        expect(read.columns).toEqual(columns);
        expect(read.rows.map(({ raw }) => JSON.parse(raw))).toEqual(cells);
        const shown: string[][] = parse(text, { bom: true, relax_column_count: true });
        for (const cell of shown.flat()) expect(cell).not.toMatch(/^\s*[=+\-@＝]/);
      }),
      propertyRuns(0.3),
    );
  });

  it('can be imported as it is: what is corrected is accepted, what is not is rejected again', async () => {
    const file =
      'MRN,email,First name,Surname,Therapist\n=c-1,no mail,-Ann,Roe,p-1\nc-2,,Bea,Roe,p-1,surplus\nc-3,"Cy,Roe,p-1\nc-4,,Dee,,p-1\n';
    const first = await readAll(file, csv);
    const rejected = first.rows.flatMap((row) => (row.ok ? [] : [row]));
    expect(rejected.map(({ code }) => code)).toEqual(['bad-email', 'cell-count', 'bad-quote', 'missing-field']);

    const text = await written(rejected, first.columns);
    const again = await readAll(text, csv);
    expect(again.columns).toEqual(first.columns);
    expect(again.rows.map((row) => (row.ok ? 'ok' : row.code))).toEqual([
      'bad-email',
      'cell-count',
      'bad-quote',
      'missing-field',
    ]);
    expect(text).toContain('c-3');

    const corrected = await readAll(
      text.replace('no mail', 'ann@example.org').replace('c-4,,Dee,,', 'c-4,,Dee,Doe,'),
      csv,
    );
    expect(corrected.rows[0]).toMatchObject({ ok: true, person: { externalId: '=c-1', firstName: '-Ann' } });
    expect(corrected.rows[3]).toMatchObject({ ok: true, person: { lastName: 'Doe' } });
  });

  it('what comes back unchanged, also through a spreadsheet, is rejected for the same reason', async () => {
    const broken =
      'MRN,email,First name,Surname,Therapist\n0012,no mail,Ann,Roe,p-1\nc-2,,Bea\nc-3,"Cy,Roe,p-1\n=c-4,,Dee,Doe,p-1\nc-5,,"a\r\nb",Doe,\n';
    const first = await readAll(`${broken}${'x'.repeat(300)}\n`, { ...csv, limits: { row: 200, cell: 100 } });
    const rejected: RejectedLine[] = first.rows.map((row) => {
      const { code, hint } = row.ok ? { code: 'duplicate-id', hint: 'Twice.' } : row;
      return { raw: row.raw, line: row.line, code, hint };
    });
    const codes = ['bad-email', 'cell-count', 'bad-quote', 'duplicate-id', 'bad-character', 'row-too-large'];
    expect(rejected.map(({ code }) => code)).toEqual(codes);
    const text = await written(rejected, first.columns);
    for (const back of [text, throughSpreadsheet(text)]) {
      const again = await readAll(back, csv);
      expect(again.columns).toEqual(first.columns);
      expect(again.rows.map((row) => !row.ok && row.code)).toEqual(codes);
      const lines = again.rows.map((row, at) => ({ ...(rejected[at] as RejectedLine), raw: row.raw }));
      expect(await written(lines, again.columns)).toBe(text.replace('a\r\nb', back === text ? 'a\r\nb' : 'a\nb'));
    }
    const corrected = (await readAll(throughSpreadsheet(text.replace("'=c-4", "'=c-44")), csv)).rows[3];
    expect(corrected).toMatchObject({ ok: true, person: { externalId: '=c-44' } });
  });

  it('what was decided by who was known is decided anew', async () => {
    const raw = rawRow(['c-1', '', 'Ann', 'Roe', 'p-1', '']);
    for (const code of ['no-provider', 'unknown-provider']) {
      expect((await readAll(await written([{ ...because, raw, code }]), csv)).rows).toMatchObject([{ ok: true }]);
    }
  });

  it('numbers of JSON lines keep their text', async () => {
    const lines = '{"externalId":12345678901234567890,"firstName":"A","lastName":"B","providers":[101, 1e3]}\n';
    const first = await readAll(lines, { format: 'ndjson', kind: 'clients' });
    expect(first.rows).toMatchObject([{ code: 'wrong-type' }]);
    const again = await readAll(
      await written([{ ...because, ...first.rows[0], code: 'wrong-type' } as RejectedLine], first.columns),
      csv,
    );
    expect(again.rows).toMatchObject([{ code: 'wrong-type', raw: '["12345678901234567890","","A","B","101|1e3"]' }]);
  });

  it('a FHIR client comes with the providers that other resources named', async () => {
    const columns = ['kind', 'externalId', 'email', 'firstName', 'lastName', 'providers'];
    const raw = rawRow(['client', 'c-1', 'no mail', 'Ann', 'Roe', '']);
    const text = await written([{ ...because, raw, providers: ['p-2', 'p-1'] }], columns);
    const { rows } = await readAll(text.replace('no mail', ''), { format: 'csv', kind: 'fhir' });
    expect(rows).toMatchObject([{ ok: true, person: { kind: 'client', providers: ['p-2', 'p-1'] } }]);
  });

  it('text that could not be cut into cells is kept where it cannot be taken for one', async () => {
    const text = await written([{ ...because, raw: rawRow('{"externalId": =') }]);
    expect(parse(text, { bom: true, relax_column_count: true })[1]).toEqual([
      '',
      '',
      '',
      '',
      '',
      '',
      '7',
      'bad-email',
      because.hint,
      expect.stringMatching(/^[a-z]{12}$/),
      '{"externalId": =',
    ]);
  });
});

test('the rows of one file keep its columns', () => {
  const { columns, arrange } = rejectedLayout([{ file: 1, columns: ['MRN', 'Ward'], kinds: ['client'] }]);
  expect([columns, arrange(1, 'client', ['1', '2', '3'])]).toEqual([
    ['MRN', 'Ward'],
    ['1', '2', '3'],
  ]);
});

test('rows of files with different columns come under the documented ones, with their kind', () => {
  const { columns, arrange } = rejectedLayout([
    { file: 1, columns: ['Id', 'E-Mail', 'First Name', 'Last Name', 'Room'], kinds: ['provider'] },
    { file: 2, columns: ['Last Name', 'MRN', 'First Name', 'Therapist', 'Ward'], kinds: ['client'] },
  ]);
  expect(columns).toEqual(['kind', 'externalId', 'email', 'firstName', 'lastName', 'providers', 'Room', 'Ward']);
  expect(arrange(1, 'provider', ['1', 'mail', 'Ann', 'Lee', '7'])).toEqual([
    ...['provider', '1', 'mail', 'Ann', 'Lee', '', '7', ''],
  ]);
  expect(arrange(2, 'client', ['Roe', '2', 'Cleo', 'p-1', 'B'])).toEqual([
    ...['client', '2', '', 'Cleo', 'Roe', 'p-1', '', 'B'],
  ]);
});

test('cells beyond the columns of their file stay behind the others', () => {
  const { columns, arrange } = rejectedLayout([
    { file: 1, columns: ['Id', 'E-Mail', 'First Name', 'Last Name'], kinds: ['provider'] },
    { file: 2, columns: ['MRN', 'First Name', 'Last Name'], kinds: ['client'] },
  ]);
  expect(arrange(2, 'client', ['2', 'Cleo', 'Roe', 'surplus']).slice(columns.length)).toEqual(['surplus']);
});

test('nothing rejected is a file with the documented header', () => {
  expect(rejectedLayout([]).columns).toContain('externalId');
});
