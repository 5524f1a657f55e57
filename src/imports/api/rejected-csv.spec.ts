import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { readAll } from '../parse/read-all.spec-support.js';
import { isPlaceholder } from '../parse/row/email-text.js';
import { FIELDS, type RowCells } from '../parse/row/import-row.js';
import { type RejectedRow, rejectedCsv } from './rejected-csv.js';

async function written(rows: Partial<RejectedRow>[]): Promise<string> {
  async function* pages(): AsyncGenerator<RejectedRow[]> {
    yield rows.map((row) => ({
      cells: {},
      file: 'clients.csv',
      line: 7,
      code: 'bad-email',
      hint: 'Correct it.',
      ...row,
    }));
  }
  let text = '';
  for await (const piece of rejectedCsv(pages())) text += piece;
  return text;
}

const read = (text: string) => readAll(text, { format: 'csv', kind: 'both' });
const cells = {
  kind: 'client',
  externalId: 'c-1',
  email: 'no mail',
  firstName: 'Ann',
  lastName: 'Roe',
  providers: 'p-1|p-2',
};

describe('the file of rejected rows', () => {
  it('has the documented columns', async () => {
    expect(await written([{ cells }])).toBe(
      '\ufeffkind,externalId,email,firstName,lastName,providers,platformUserId,file,line,code,hint\r\n' +
        'client,c-1,no mail,Ann,Roe,p-1|p-2,,clients.csv,7,bad-email,Correct it.\r\n',
    );
  });

  it('comes back as it is rejected: its code cells are still filled', async () => {
    const { rows } = await read(await written([{ cells: { ...cells, email: 'ann@example.org' } }]));
    expect(rows).toMatchObject([{ is: 'rejected', code: 'not-corrected', kind: 'client', externalId: 'c-1' }]);
  });

  it('comes back corrected as the person of each row', async () => {
    const { rows } = await read(await written([{ cells: { ...cells, email: '' }, code: '' }]));
    const person = { kind: 'client', externalId: 'c-1', firstName: 'Ann', lastName: 'Roe', providers: ['p-1', 'p-2'] };
    expect(rows).toMatchObject([{ is: 'person', person }]);
  });

  it('is safe in a spreadsheet, and comes back with the cells that it was made of, regardless of their content', async () => {
    const nasty = fc.string({
      unit: fc.constantFrom('=', '+', '-', '@', "'", '"', ',', ';', '\t', '\r', '\n', ' ', 'a', 'é', '＝'),
      maxLength: 6,
    });
    const row = fc.record({
      firstName: nasty,
      lastName: nasty,
      email: nasty.filter((text) => !isPlaceholder(text)),
      providers: nasty,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 4 }), async (some) => {
        const text = await written(some.map((one) => ({ cells: { ...one, kind: 'client', externalId: 'c-1' } })));
        const shown: string[][] = parse(text, { bom: true });
        for (const cell of shown.flat()) expect(cell).not.toMatch(/^\s*[=+\-@＝]/);
        const { rows } = await read(text);
        const returned = rows.map((one) => (one.is === 'rejected' ? one.cells : {}));
        const textsOf = (from: RowCells) => FIELDS.map((field) => (from[field] ?? '').trim());
        expect(returned.map(textsOf)).toEqual(
          some.map((one) => textsOf({ ...one, kind: 'client', externalId: 'c-1' })),
        );
      }),
      propertyRuns(0.3),
    );
  });
});
