import { Random } from '../src/config/random.js';
import type { Database } from '../src/database/database.js';
import type { RowOutcome } from '../src/imports/model/import-types.js';
import { RawRowsRepository } from '../src/imports/upload/raw-rows.repository.js';
import { StagingRepository } from '../src/imports/upload/staging.repository.js';
import { ProfileSeal } from '../src/people/model/profile.js';
import { Vault } from '../src/vault/vault.js';
import { NEW_IMPORT } from './support/bulk.js';
import { freshDatabase, openDatabase, type TestDatabase } from './support/databases.js';

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

describe('of what rows were read as, their import keeps what the file of rejected rows may show yet', () => {
  let home: TestDatabase;
  let database: Database;
  let rawRows: RawRowsRepository;
  let staging: StagingRepository;

  beforeAll(async () => {
    home = await freshDatabase();
    database = openDatabase(home);
    const vault = new Vault([{ id: 'k', key: Buffer.alloc(32, 1) }], Buffer.alloc(32, 2), new Random());
    rawRows = new RawRowsRepository(database, vault);
    staging = new StagingRepository(new ProfileSeal(vault), vault, rawRows);
  });

  afterAll(async () => {
    await database.onApplicationShutdown();
    await home.drop();
  });

  /** Stores rows in blocks of so many. @returns the numbers of those whose cells are there afterwards */
  async function kept(cases: readonly Case[], block: number, mayBeRetried: boolean): Promise<number[]> {
    const { id } = (await database.pool.query<{ id: string }>(NEW_IMPORT)).rows[0] ?? { id: '' };
    const rowNos = cases.map((_, at) => at + 1);
    await database.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, outcome, planned, code)
         SELECT $1, n, 1, n, kind, 'x-' || n, outcome, planned, code
         FROM unnest($2::person_kind[], $3::row_outcome[], $4::text[], $5::text[])
           WITH ORDINALITY AS c(kind, outcome, planned, code, n)`,
        [
          id,
          cases.map(([kind]) => kind),
          cases.map((one) => one[1]),
          cases.map((one) => one[2]),
          cases.map((one) => one[3]),
        ],
      );
      for (let first = 0; first < rowNos.length; first += block) {
        const some = rowNos.slice(first, first + block);
        const sealed = rawRows.seal(id, new Map(some.map((rowNo) => [rowNo, { raw: `row ${rowNo}` }])));
        await staging.storeUnchanged(tx, id, [], sealed);
      }
      await rawRows.discard(tx, id, { mayBeRetried });
    });
    const found = await Promise.all(
      rowNos.map(async (rowNo) =>
        (await rawRows.blockOf(id, rowNo))?.get(rowNo)?.raw === `row ${rowNo}` ? [rowNo] : [],
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
