import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type pg from 'pg';
import { Clock } from '../src/config/clock.js';
import { Random } from '../src/config/random.js';
import { knownPersonKeys } from '../src/imports/parse/fhir/reference-key.js';
import { NOW } from '../src/imports/parse/read-all.spec-support.js';
import { resolveProviders, upsertedProviders } from '../src/imports/parse/resolve-providers.spec-support.js';
import type { LinkReference, ResourceReference } from '../src/imports/parse/row/import-row.js';
import { HASHES_AT_ONCE } from '../src/imports/plan/known-providers.js';
import { ReferencesRepository } from '../src/imports/plan/references.repository.js';
import { Vault } from '../src/vault/vault.js';
import { testVault } from './support/audit.js';
import { NEW_IMPORT } from './support/bulk.js';
import { importRepositories } from './support/import-repositories.js';

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
const moment = fc.option(
  fc.constantFrom(
    ...['0001-01-01', '2024-02-28', '2024-02-29T10:00:00.001Z', '2024-02-29T10:00:00.002Z'],
    ...['2025-02-28T10:00:00.001Z', '2025-02-28T10:00:00.002Z', '2025-02-28T10:00:00.003Z', '9999-12-31'],
  ),
  { nil: undefined },
);
const role = fc
  .record({ key, practitionerKey: key, ends: moment })
  .map(({ ends, ...rest }) => ({ type: 'role' as const, ...rest, ...(ends && { ends: new Date(ends) }) }));
const link = fc
  .record({
    clientKey,
    providerKey: key,
    rank: fc.constantFrom(1 as const, 2 as const, 3 as const),
    at: moment,
    ends: moment,
    position: fc.constantFrom(0, 0, 1),
  })
  .map(
    ({ at, ends, ...rest }): LinkReference => ({
      ...({ type: 'link', form: 'identifier', ...rest } as const),
      ...(at && { at: new Date(at) }),
      ...(ends && { ends: new Date(ends) }),
    }),
  );
const facts = fc.array(fc.oneof<fc.Arbitrary<ResourceReference>[]>(alias, role, link, link), {
  minLength: 20,
  maxLength: 60,
});
const known = fc.subarray(KNOWN_BEFORE, { maxLength: 3 });
/** How the import is meant, and whom each client has before it. */
const how = fc.record({
  mode: fc.constantFrom('upsert' as const, 'snapshot' as const),
  encounterSince: fc.constantFrom(null, null, new Date('2025-02-28T10:00:00.002Z')),
  had: fc.array(fc.shuffledSubarray(KNOWN_BEFORE), { minLength: 3, maxLength: 3 }),
});

/** The present of the tests. */
class Stopped extends Clock {
  override now(): Date {
    return NOW;
  }
}

let parts: Awaited<ReturnType<typeof importRepositories>>;
let tx: pg.PoolClient;

beforeAll(async () => {
  parts = await importRepositories();
  tx = await parts.database.pool.connect();
});

afterAll(async () => {
  tx.release();
  await parts.close();
});

test(`the providers of clients are in SQL what the rule says they are (SEED=${SEED})`, async () => {
  const clock = new Stopped();
  const references = new ReferencesRepository(testVault(), clock);
  const seen = { lists: 0 };

  await fc.assert(
    fc.asyncProperty(facts, known, how, async (told, knownBefore, { mode, encounterSince, had }) => {
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
        const before = CLIENTS.map((_, at) => (had[at] ?? []).filter((one) => knownBefore.includes(one)));
        await tx.query(
          `INSERT INTO people (id, kind, external_id, profile, profile_hash)
             SELECT gen_random_uuid(), 'client', external_id, '', '' FROM unnest($1::text[]) AS external_id`,
          [CLIENTS],
        );
        for (const [at, client] of CLIENTS.entries()) {
          await tx.query(
            `INSERT INTO client_providers (client_id, provider_id, position)
               SELECT c.id, p.id, n FROM unnest($2::text[]) WITH ORDINALITY AS has(provider, n)
               JOIN people c ON c.kind = 'client' AND c.external_id = $1
               JOIN people p ON p.kind = 'provider' AND p.external_id = has.provider`,
            [client, before[at]],
          );
        }
        await parts.staging.storeReferences(tx, id, told);
        await references.resolve(tx, { id, idSystems: [], mode, encounterSince });
        const { rows } = await tx.query<{ external_id: string; providers: string[] }>(
          'SELECT external_id, providers FROM import_rows WHERE import_id = $1 ORDER BY row_no',
          [id],
        );
        const aliases = knownBefore.flatMap((externalId) =>
          knownPersonKeys('provider', externalId).map(
            (one): ResourceReference => ({ type: 'alias', kind: 'provider', key: one, externalId }),
          ),
        );
        const window = { now: NOW, ...(encounterSince && { encounterSince }) };
        const found = resolveProviders([...told, ...aliases], window);
        for (const [at, { external_id, providers }] of rows.entries()) {
          const list = found.get(external_id);
          const wanted = mode === 'upsert' ? upsertedProviders(before[at] ?? [], list) : (list?.providers ?? []);
          expect([external_id, providers]).toEqual([external_id, list?.providers.length ? wanted : []]);
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

test('keys of the people who are known are hashed a few at a time, however many systems there are', async () => {
  const idSystems = Array.from({ length: 20 }, (_, n) => `urn:system:${n}`);
  let [hashed, most, all] = [0, 0, 0];
  class Counted extends Vault {
    override fingerprint(...key: Parameters<Vault['fingerprint']>): Buffer {
      [hashed, all] = [hashed + 1, all + 1];
      most = Math.max(most, hashed);
      return super.fingerprint(...key);
    }
  }
  let turning = true;
  const turn = () => {
    hashed = 0;
    if (turning) setImmediate(turn);
  };
  await tx.query('BEGIN');
  try {
    const { id } = (await tx.query<{ id: string }>(NEW_IMPORT)).rows[0] ?? { id: '' };
    await tx.query(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash)
         SELECT gen_random_uuid(), 'provider', 'many-' || n, '', '' FROM generate_series(1, 500) AS n`,
    );
    await tx.query(
      `INSERT INTO import_references (import_id, reference_no, type, key, target) VALUES ($1, 1, 'role', 'a', 'b')`,
      [id],
    );
    turn();
    await new ReferencesRepository(
      new Counted([{ id: 'k', key: Buffer.alloc(32, 1) }], Buffer.alloc(32, 2), new Random()),
      new Stopped(),
    ).resolve(tx, { id, idSystems, mode: 'upsert', encounterSince: null });
  } finally {
    turning = false;
    await tx.query('ROLLBACK');
  }
  expect(all).toBe(500 * 20);
  expect(most).toBeLessThanOrEqual(HASHES_AT_ONCE);
});
