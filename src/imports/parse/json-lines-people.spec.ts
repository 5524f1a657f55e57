import { readAll } from './read-all.spec-support.js';
import type { FileKind } from './row/import-row.js';

const lines = (file: string, kind: FileKind = 'clients', limits?: { row: number; cell: number }) =>
  readAll(file, { format: 'ndjson', kind, limits });

const ada = {
  externalId: 'c-1',
  firstName: 'Ada',
  lastName: 'Osei',
  email: 'ada@example.org',
  providers: ['p-1', 'p-2'],
};

async function fault(record: object | string, kind: FileKind = 'clients') {
  const { rows } = await lines(typeof record === 'string' ? record : JSON.stringify(record), kind);
  const [row] = rows;
  return row?.is === 'rejected' ? [row.code, row.field] : 'accepted';
}

describe('JSON lines of people', () => {
  it('are read one object per line, past blank lines, CRLF and a byte-order mark', async () => {
    const { rows } = await lines(
      `\ufeff${JSON.stringify(ada)}\r\n\r\n${JSON.stringify({ ...ada, externalId: 'c-2' })}`,
    );
    expect(rows).toMatchObject([
      { line: 1, is: 'person', person: { kind: 'client', ...ada } },
      { line: 3, is: 'person', person: { externalId: 'c-2' } },
    ]);
  });

  it('null stands for an absent field', async () => {
    const { rows } = await lines(JSON.stringify({ ...ada, email: null, providers: null }));
    expect(rows).toMatchObject([{ is: 'person', person: { externalId: 'c-1' } }]);
    expect(rows[0]).not.toHaveProperty('person.providers');
  });

  it.each([
    ['{"externalId":', 'bad-json', undefined],
    ['[1]', 'bad-json', undefined],
    ['null', 'bad-json', undefined],
    ['{}', 'missing-field', 'externalId'],
    [{ ...ada, room: 3 }, 'unknown-field', 'room'],
    [{ ...ada, 'Ann Roe ann@example.org': 1 }, 'unknown-field', undefined],
    ['{"externalId":"c-1","__proto__":{}}', 'unknown-field', undefined],
    [{ ...ada, externalId: 7 }, 'wrong-type', 'externalId'],
    [{ ...ada, providers: 'p-1' }, 'wrong-type', 'providers'],
    [{ ...ada, providers: ['p-1', 2] }, 'wrong-type', 'providers'],
    [{ ...ada, providers: ['p-1', ''] }, 'missing-field', 'providers'],
    [{ ...ada, externalId: ' c-1' }, 'bad-id', 'externalId'],
    [{ ...ada, lastName: 'O\ud800sei' }, 'bad-character', 'lastName'],
    [`${'['.repeat(100_000)}`, 'bad-json', undefined],
  ] as const)('%.60j is rejected', async (record, code, field) => {
    expect(await fault(record)).toEqual([code, field]);
  });

  it('a provider has no providers', async () => {
    expect(await fault(ada, 'providers')).toEqual(['unknown-field', 'providers']);
    const { providers: _, ...provider } = ada;
    expect(await fault(provider, 'providers')).toBe('accepted');
  });

  it('a line over the limit is rejected, and reading continues', async () => {
    const file = `${JSON.stringify({ ...ada, firstName: 'A'.repeat(500) })}\n${JSON.stringify(ada)}\n`;
    const { rows } = await lines(file, 'clients', { row: 400, cell: 64 });
    expect(rows).toMatchObject([
      { line: 1, code: 'row-too-large' },
      { line: 2, is: 'person' },
    ]);
  });

  it('a rejected record keeps its cells, but no number that lost digits', async () => {
    const { rows } = await lines(
      [7, 12345678901234567890n]
        .map((id) => JSON.stringify({ ...ada, providers: ['p-1', 2] }).replace('"c-1"', String(id)))
        .join('\n'),
    );
    const cells = { firstName: 'Ada', lastName: 'Osei', email: ada.email, providers: 'p-1|2' };
    expect(rows).toMatchObject([
      { is: 'rejected', kind: 'client', code: 'wrong-type', externalId: '7', cells: { ...cells, externalId: '7' } },
      { cells },
    ]);
    expect(rows[1]).not.toHaveProperty('externalId');
    expect(rows[1]).not.toHaveProperty('cells.externalId');
  });

  it('placeholders are empty, and the first usable email counts', async () => {
    const record = { ...ada, email: 'N/A', providers: ['none', 'p-1'], platformUserId: '-' };
    const { rows } = await lines(`${JSON.stringify(record)}\n${JSON.stringify({ ...ada, email: 'x; a@x.org' })}`);
    expect(rows).toMatchObject([{ person: { providers: ['p-1'] } }, { person: { email: 'a@x.org' } }]);
    expect(rows[0]).not.toHaveProperty('person.email');
    expect(rows[0]).not.toHaveProperty('person.platformUserId');
  });

  it('name their kind if a file contains both', async () => {
    const { rows } = await lines(
      ['provider', 'client', 'pet'].map((kind) => JSON.stringify({ ...ada, kind })).join('\n'),
      'both',
    );
    expect(rows).toMatchObject([
      { person: { kind: 'provider' } },
      { person: { kind: 'client', providers: ['p-1', 'p-2'] } },
      { code: 'wrong-type', field: 'kind', cells: { kind: 'pet' } },
    ]);
    expect(await fault({ ...ada, kind: 'client' })).toEqual(['unknown-field', 'kind']);
  });
});
