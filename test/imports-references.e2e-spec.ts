import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type pg from 'pg';
import { Random } from '../src/config/random.js';
import type { Database } from '../src/database/database.js';
import type { LinkFact, ReferenceFact } from '../src/imports/read/import-row.js';
import { knownPersonKeys } from '../src/imports/read/reference-key.js';
import { resolveProviders } from '../src/imports/read/resolve-providers.js';
import { ReferenceKeys } from '../src/imports/reference-keys.js';
import { ReferencesRepository } from '../src/imports/references.repository.js';
import { RowCellsRepository } from '../src/imports/row-cells.repository.js';
import { StagingRepository } from '../src/imports/staging.repository.js';
import { UnchangedRowsRepository } from '../src/imports/unchanged-rows.repository.js';
import { ProfileSeal } from '../src/people/profile.js';
import { Vault } from '../src/vault/vault.js';
import { freshDatabase, openDatabase, type TestDatabase } from './support/databases.js';

const SEED = Number(process.env.SEED);
const RUNS = 100;

const CLIENTS = ['c-1', 'c-2', 'c-3'];
/** Languages put the last three into different orders. */
const PROVIDERS = ['p-1', 'P-1', 'p-2', 'p 10', 'é', '\uff61', '\u{1f600}'];
/** Keys by which clients are meant, by which providers and roles are, and by which providers who are known before. */
const CLIENT_KEYS = ['kc-1', 'kc-2', 'kc-3', 'kc-4', 'shared', 'nobody'];
const PROVIDER_KEYS = ['kp-1', 'kp-2', 'kp-3', 'kp-4', 'kp-5', 'kp-6', 'shared', 'nobody'];
const KNOWN_BEFORE = PROVIDERS.slice(0, 4);
const KNOWN_KEYS = KNOWN_BEFORE.flatMap((externalId) => knownPersonKeys('provider', externalId));

const clientKey = fc.constantFrom(...CLIENT_KEYS);
const key = fc.constantFrom(...PROVIDER_KEYS, ...KNOWN_KEYS);
const alias = fc.oneof(
  fc.record({
    type: fc.constant('alias' as const),
    kind: fc.constant('provider' as const),
    key,
    externalId: fc.constantFrom(...PROVIDERS),
  }),
  fc.record({
    type: fc.constant('alias' as const),
    kind: fc.constant('client' as const),
    key: clientKey,
    externalId: fc.constantFrom(...CLIENTS),
  }),
);
const role = fc.record({ type: fc.constant('role' as const), key, practitionerKey: key });
const moment = fc.option(
  fc.constantFrom('0001-01-01', '2024-02-29T10:00:00.001Z', '2024-02-29T10:00:00.002Z', '9999-12-31'),
  { nil: undefined },
);
const link = fc
  .record({
    clientKey,
    providerKey: key,
    rank: fc.constantFrom(1 as const, 2 as const, 3 as const),
    at: moment,
    position: fc.constantFrom(0, 0, 1),
  })
  .map(({ at, ...rest }): LinkFact => ({ type: 'link', form: 'identifier', ...rest, ...(at && { at: new Date(at) }) }));
const facts = fc.array(fc.oneof<fc.Arbitrary<ReferenceFact>[]>(alias, role, link, link), {
  minLength: 20,
  maxLength: 60,
});
const known = fc.subarray(KNOWN_BEFORE, { maxLength: 3 });

let fresh: TestDatabase;
let database: Database;
let tx: pg.PoolClient;

beforeAll(async () => {
  fresh = await freshDatabase();
  database = openDatabase(fresh);
  tx = await database.pool.connect();
});

afterAll(async () => {
  tx.release();
  await database.onApplicationShutdown();
  await fresh.drop();
});

test(`the providers of clients are in SQL what the rule says they are (SEED=${SEED})`, async () => {
  const vault = new Vault([{ id: 'k', key: Buffer.alloc(32, 1) }], Buffer.alloc(32, 2), new Random());
  const keys = new ReferenceKeys(vault);
  const seal = new ProfileSeal(vault);
  const cells = new RowCellsRepository(database, vault);
  const staging = new StagingRepository(seal, keys, cells, new UnchangedRowsRepository(cells, seal));
  const references = new ReferencesRepository(keys);
  const seen = { lists: 0 };

  await fc.assert(
    fc.asyncProperty(facts, known, async (told, knownBefore) => {
      const id = randomUUID();
      await tx.query('BEGIN');
      try {
        await tx.query(
          `INSERT INTO imports (id, kind, mode, dry_run, id_systems, state, created_by) VALUES ($1, 'fhir', 'upsert', false, '{}', 'staging', 'test')`,
          [id],
        );
        await tx.query(
          `INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id)
             SELECT $1, n, 1, n, 'client', external_id FROM unnest($2::text[]) WITH ORDINALITY AS client(external_id, n)`,
          [id, CLIENTS],
        );
        await tx.query(
          `INSERT INTO people (id, kind, external_id, profile, profile_hash)
             SELECT gen_random_uuid(), 'provider', external_id, '', '' FROM unnest($1::text[]) AS external_id`,
          [knownBefore],
        );
        await staging.storeFacts(
          tx,
          id,
          told.map((fact, at) => ({ ...fact, factNo: at + 1 })),
        );
        await references.resolve(tx, { id, idSystems: [] });
        const { rows } = await tx.query<{ external_id: string; providers: string[] }>(
          'SELECT external_id, providers FROM import_rows WHERE import_id = $1 ORDER BY row_no',
          [id],
        );
        const before = knownBefore.flatMap((externalId) =>
          knownPersonKeys('provider', externalId).map(
            (one): ReferenceFact => ({ type: 'alias', kind: 'provider', key: one, externalId }),
          ),
        );
        const wanted = resolveProviders([...told, ...before]);
        for (const { external_id, providers } of rows) {
          expect([external_id, providers]).toEqual([external_id, wanted.get(external_id)?.providers ?? []]);
          if (providers.length > 1) seen.lists++;
        }
      } finally {
        await tx.query('ROLLBACK');
      }
    }),
    { seed: SEED, numRuns: RUNS },
  );
  expect(seen.lists).toBeGreaterThan(RUNS / 50);
});
