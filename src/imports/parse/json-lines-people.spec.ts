import { readAll } from './read-all.spec-support.js';
import type { ImportKind } from './row/import-row.js';

const lines = (file: string, kind: ImportKind = 'clients', limits?: { row: number; cell: number }) =>
  readAll(file, { format: 'ndjson', kind, limits });

const ada = {
  externalId: 'c-1',
  firstName: 'Ada',
  lastName: 'Osei',
  email: 'ada@example.org',
  providers: ['p-1', 'p-2'],
};

async function fault(record: object | string, kind: ImportKind = 'clients') {
  const { rows } = await lines(typeof record === 'string' ? record : JSON.stringify(record), kind);
  const [row] = rows;
  return row?.ok ? 'accepted' : [row?.code, row?.field];
}

describe('JSON lines of people', () => {
  it('are read one object a line, blank lines and CRLF and a byte-order mark do no harm', async () => {
    const { rows } = await lines(
      `\ufeff${JSON.stringify(ada)}\r\n\r\n${JSON.stringify({ ...ada, externalId: 'c-2' })}`,
    );
    expect(rows).toMatchObject([
      { line: 1, ok: true, person: { kind: 'client', ...ada } },
      { line: 3, ok: true, person: { externalId: 'c-2' } },
    ]);
  });

  it('null stands for an absent field', async () => {
    const { rows } = await lines(JSON.stringify({ ...ada, email: null, providers: null }));
    expect(rows).toMatchObject([{ ok: true, person: { externalId: 'c-1' } }]);
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

  it('a line over the limit is rejected, and reading goes on', async () => {
    const file = `${JSON.stringify({ ...ada, firstName: 'A'.repeat(500) })}\n${JSON.stringify(ada)}\n`;
    const { rows } = await lines(file, 'clients', { row: 400, cell: 64 });
    expect(rows).toMatchObject([
      { line: 1, code: 'row-too-large' },
      { line: 2, ok: true },
    ]);
  });

  it('what can be mended keeps its cells', async () => {
    const { rows } = await lines(JSON.stringify({ ...ada, externalId: 7, room: 1 }));
    expect(rows[0]?.raw).toBe('["7","ada@example.org","Ada","Osei","p-1|p-2"]');
  });
});
