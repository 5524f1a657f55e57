import fc from 'fast-check';
import type { RowOutcome } from '../src/imports/model/import.js';
import { type ReadRow, rawRow } from '../src/imports/parse/row/import-row.js';
import { isImportableId } from '../src/imports/parse/row/validate-person.js';
import { ProviderCells } from '../src/imports/upload/provider-cells.js';
import { testVault } from './support/audit.js';
import { NEW_IMPORT } from './support/bulk.js';
import { importRepositories } from './support/import-repositories.js';

const SEED = Number(process.env.SEED);

const rejectedRow = (line: number, raw: string): ReadRow => ({
  ...({ type: 'row', ok: false, span: 1, code: 'bad-json', hint: 'x' } as const),
  ...{ line, raw },
});

/** A row, and whether its cells are kept while the import may be retried, and when it may not. */
type Case = [
  kind: string | null,
  outcome: RowOutcome,
  planned: string,
  code: string | null,
  kept: boolean,
  atEnd: boolean,
];

const CASES: Case[] = [
  ['client', 'rejected', 'rejected', 'bad-email', true, true],
  [null, 'rejected', 'rejected', 'bad-row', true, true],
  ['client', 'pending', 'create-or-link', null, true, false],
  ['client', 'failed', 'create-or-link', 'rejected-by-platform', true, false],
  ['client', 'needsReview', 'needs-review', 'email-taken', true, false],
  ['client', 'skipped', 'provider-change', 'changed-since-plan', true, false],
  ['client', 'skipped', 'create-or-link', 'cancelled', false, false],
  ['client', 'created', 'create-or-link', null, false, false],
  ['client', 'linked', 'create-or-link', null, false, false],
  ['client', 'updated', 'attribute-change', 'not-pushable', false, false],
  ['client', 'unchanged', 'unchanged', null, false, false],
  // No retry rejects a provider: of its rows only a later one with its id, which stays rejected.
  ['provider', 'pending', 'create-or-link', null, false, false],
  ['provider', 'skipped', 'create-or-link', 'changed-since-plan', false, false],
];

let parts: Awaited<ReturnType<typeof importRepositories>>;

beforeAll(async () => {
  parts = await importRepositories();
});
afterAll(() => parts.close());

const newImport = async () => (await parts.database.pool.query<{ id: string }>(NEW_IMPORT)).rows[0]?.id ?? '';

describe('of what rows were read as, their import keeps what the file of rejected rows may show yet', () => {
  /** Stores rows in blocks of so many. @returns the numbers of those whose cells are there afterwards */
  async function kept(cases: readonly Case[], block: number, mayBeRetried: boolean): Promise<number[]> {
    const { staging, database } = parts;
    const id = await newImport();
    const rowNos = cases.map((_, at) => at + 1);
    await database.transaction(async (tx) => {
      for (let first = 0; first < rowNos.length; first += block) {
        const some = rowNos.slice(first, first + block);
        const rows = some.map((rowNo) => staging.staged(rowNo, 1, rejectedRow(rowNo, `row ${rowNo}`), null, []));
        await staging.storeRows(tx, id, staging.batch(id, rows, new ProviderCells(testVault())));
      }
      await tx.query(
        `UPDATE import_rows SET kind = c.kind, external_id = 'x-' || n, outcome = c.outcome, planned = c.planned, code = c.code
         FROM unnest($2::person_kind[], $3::row_outcome[], $4::text[], $5::text[])
           WITH ORDINALITY AS c(kind, outcome, planned, code, n)
         WHERE import_id = $1 AND row_no = n`,
        [
          id,
          cases.map(([kind]) => kind),
          cases.map((one) => one[1]),
          cases.map((one) => one[2]),
          cases.map((one) => one[3]),
        ],
      );
      await staging.discardRaw(tx, id, { mayBeRetried });
    });
    const found = await Promise.all(
      rowNos.map(async (rowNo) =>
        (await staging.blockOf(id, rowNo))?.get(rowNo)?.raw === `row ${rowNo}` ? [rowNo] : [],
      ),
    );
    return found.flat();
  }

  const expected = (which: (one: Case) => boolean) => CASES.flatMap((one, at) => (which(one) ? [at + 1] : []));

  test.each([1, 2, 5, CASES.length])('in blocks of %d', async (block) => {
    expect(await kept(CASES, block, true)).toEqual(expected((one) => one[4]));
    expect(await kept(CASES, block, false)).toEqual(expected((one) => one[5]));
  });
});

test(`rows are stored as they were read, whatever stands in them (SEED=${SEED})`, async () => {
  const { staging, seal, database } = parts;
  const unit = fc.oneof(
    fc.constantFrom(
      '\\',
      '"',
      "'",
      '{',
      '}',
      ',',
      ' ',
      'NULL',
      '\0',
      '\n',
      '\\N',
      '\ud800',
      '\udc00',
      '\u{1f600}',
      'é',
    ),
    fc.string({ unit: 'binary', maxLength: 3 }),
  );
  const text = fc.oneof(
    fc.array(unit, { maxLength: 8 }).map((units) => units.join('')),
    fc.constant('\\"'.repeat(30_000)),
  );
  const id = text.map((any) => `x${any}x`).filter(isImportableId);
  const name = text.map((any) => any.replace(/\p{Cs}/gu, '?'));
  const person = fc.record({
    externalId: id,
    firstName: name,
    lastName: name,
    providers: fc.array(id, { maxLength: 3 }),
  });
  const row = fc.record({ raw: text.map(rawRow), person: fc.option(person) });
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 5 }), async (rows) => {
      const importId = await newImport();
      const staged = rows.map(({ raw, person: one }, at) => {
        const read: ReadRow = one
          ? { ...({ type: 'row', ok: true, span: 1 } as const), line: at + 1, raw, person: { kind: 'client', ...one } }
          : rejectedRow(at + 1, raw);
        return staging.staged(at + 1, 1, read, null, one?.providers ?? []);
      });
      const cells = new ProviderCells(testVault());
      for (const one of rows.flatMap(({ person: known }) => known?.providers ?? [])) cells.brings(one);
      await database.transaction((tx) => staging.storeRows(tx, importId, staging.batch(importId, staged, cells)));
      const stored = await database.pool.query(
        'SELECT external_id, providers, profile FROM import_rows WHERE import_id = $1 ORDER BY row_no',
        [importId],
      );
      for (const [at, { raw, person: one }] of rows.entries()) {
        const { external_id, providers, profile } = stored.rows[at];
        expect([external_id, providers]).toEqual(one ? [one.externalId, one.providers] : [null, []]);
        if (one) {
          const opened = seal.open({ kind: 'client', externalId: one.externalId }, profile);
          expect(opened).toEqual({ email: null, firstName: one.firstName, lastName: one.lastName });
        }
        expect((await staging.blockOf(importId, at + 1))?.get(at + 1)?.raw).toBe(raw);
      }
    }),
    { seed: SEED, numRuns: 100 },
  );
});
