import pg from 'pg';
import type { Statement } from '../../harness/query-plans.js';

/** All statements about one of the tables that this process sends to PostgreSQL during some work, including Prisma's. */
export async function statementsOf(tables: readonly string[], work: () => Promise<unknown>): Promise<Statement[]> {
  const seen: Statement[] = [];
  const original = pg.Client.prototype.query;
  const spy = jest.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...args: unknown[]
  ) {
    const [first, second] = args;
    const { text, values } = typeof first === 'string' ? { text: first, values: second } : (first as Statement);
    if (tables.some((table) => new RegExp(`\\b${table}\\b`).test(text))) {
      seen.push({ text, values: Array.isArray(values) ? values : [] });
    }
    return Reflect.apply(original, this, args);
  } as typeof original);
  try {
    await work();
  } finally {
    spy.mockRestore();
  }
  return seen;
}
