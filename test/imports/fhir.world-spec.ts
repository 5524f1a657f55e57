import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import type { ImportFile } from '../../harness/service.js';
import { Clock } from '../../src/config/clock.js';
import { propertyRuns } from '../../src/config/property-runs.spec-support.js';
import { Database } from '../../src/database/database.js';
import { knownPersonKeys } from '../../src/imports/parse/fhir/reference-key.js';
import { NOW } from '../../src/imports/parse/read-all.spec-support.js';
import { resolveProviders, upsertedProviders } from '../../src/imports/parse/resolve-providers.spec-support.js';
import type { LinkReference, ResourceReference } from '../../src/imports/parse/row/import-row.js';
import { HASHES_AT_ONCE } from '../../src/imports/plan/known-providers.js';
import { ReferencesRepository } from '../../src/imports/plan/references.repository.js';
import { StagingRepository } from '../../src/imports/upload/staging.repository.js';
import { Vault } from '../../src/vault/vault.js';
import { clientsCsv, NEW_IMPORT, OUTCOMES_OF_PLAN, providerLine, providersCsv } from '../support/bulk.js';
import { describeWithSharedData } from '../support/shared-data.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';

const SEED = Number(process.env.SEED);
const NPI = 'http://hl7.org/fhir/sid/us-npi';

const world = useWorld();
const { imported, mirrored, planned, upload, ended, steer, rows, rejected } = importsIn(world);

const practitioner = (id: string) => ({
  resourceType: 'Practitioner',
  id,
  identifier: [{ system: NPI, value: `npi-${id}` }],
  name: [{ family: id, given: ['Pia'] }],
  telecom: [{ system: 'email', value: `${id}@example.org` }],
});
const patient = (id: string, ...general: string[]) => ({
  resourceType: 'Patient',
  id,
  name: [{ family: id, given: ['Cleo'] }],
  ...(general.length > 0 && { generalPractitioner: general.map((reference) => ({ reference })) }),
});
const encounter = (client: string, provider: string, day = '2026-11-01') => ({
  resourceType: 'Encounter',
  status: 'finished',
  subject: { reference: `Patient/${client}` },
  period: { start: day },
  participant: [{ individual: { reference: provider } }],
});
const team = (client: string, provider: string, more: object = {}) => ({
  resourceType: 'CareTeam',
  subject: { reference: `Patient/${client}` },
  participant: [{ member: { reference: provider } }],
  ...more,
});

const file = (name: string, lines: string[]): ImportFile => ({
  ...{ name: `${name}.ndjson`, type: 'application/fhir+ndjson' },
  content: lines.join('\n'),
});
const ndjson = (...resources: object[]) => [
  file(
    'resources',
    resources.map((resource) => JSON.stringify(resource)),
  ),
];
const listOf = async (client: string) => (await world.call('GET', `/v1/clients/${client}`)).body.providers;

describe('the providers of a client', () => {
  const all = ['p-1', 'p-2', 'p-3'].map(practitioner);

  test('get those of encounters and teams added, are replaced by general practitioners, and stay otherwise', async () => {
    await mirrored('kind=fhir', ndjson(...all, patient('c-1', 'Practitioner/p-1', 'Practitioner/p-2')));
    const send = async (query: string, ...resources: object[]) => {
      await mirrored(query, ndjson(...resources));
      return listOf('c-1');
    };
    const added = await send('kind=fhir', patient('c-1'), encounter('c-1', 'Practitioner/p-3'));
    const renamed = { ...patient('c-1'), name: [{ family: 'Roe', given: ['Cleo'] }] };
    const kept = await send('kind=fhir&defaultProvider=p-3', renamed);
    const replaced = await send('kind=fhir', patient('c-1', 'Practitioner/p-3'), team('c-1', 'Practitioner/p-1'));
    expect([added, kept, replaced]).toEqual([
      ['p-1', 'p-2', 'p-3'],
      ['p-1', 'p-2', 'p-3'],
      ['p-3', 'p-1'],
    ]);
    const { id } = await planned(
      'kind=fhir&mode=snapshot',
      ndjson(...all, patient('c-1'), encounter('c-1', 'Practitioner/p-2')),
    );
    expect((await steer(id, 'apply', ['providerRemovals'])).status).toBe(202);
    await world.work.imports();
    expect(await listOf('c-1')).toEqual(['p-2']);
  });

  test('stay when a CSV has no column of them; the default provider fills an empty cell', async () => {
    const csv = clientsCsv(['c-1,,Cleo,Roe,p-1|p-2']);
    await mirrored('kind=clients', [providersCsv(['p-1', 'p-2'].map((id) => providerLine(id))), csv]);
    await mirrored('kind=clients&defaultProvider=p-1', [
      { ...csv, content: 'externalId,firstName,lastName\nc-1,Cleo,New\nc-2,Ann,New\n' },
    ]);
    expect([await listOf('c-1'), await listOf('c-2')]).toEqual([['p-1', 'p-2'], ['p-1']]);
    await mirrored('kind=clients&defaultProvider=p-1', [clientsCsv(['c-1,,Cleo,New,'])]);
    expect(await listOf('c-1')).toEqual(['p-1']);
  });

  test.each<[string, string, ImportFile, string[]]>([
    [
      'a CSV without a column of providers',
      'kind=clients',
      { name: 'clients.csv', type: 'text/csv', content: 'externalId,firstName,lastName\nc-1,Cleo,New' },
      ['p-3'],
    ],
    [
      'a FHIR Patient with an Encounter, which adds',
      'kind=fhir',
      ndjson(
        { ...patient('c-1'), name: [{ family: 'New', given: ['Cleo'] }] },
        encounter('c-1', 'Practitioner/p-2'),
      )[0] ?? file('none', []),
      ['p-3', 'p-2'],
    ],
  ])('stay after a retry of rows that do not name them: %s', async (_, kind, one, expected) => {
    await imported('kind=fhir', ndjson(...all, patient('c-1', 'Practitioner/p-1')));
    const plan = await planned(`${kind}&dryRun=true`, [one]);
    await world.call('PUT', '/v1/clients/c-1/providers', { body: { providers: ['p-3'] }, wait: 60 });
    expect((await ended(plan.id, 'apply')).counts).toMatchObject({ skipped: 1 });
    expect((await ended(plan.id, 'retry')).counts).toMatchObject({ updated: 1 });
    expect(await listOf('c-1')).toEqual(expected);
  });

  test('include none of care that has ended', async () => {
    const role = (id: string, more: object) => ({
      ...{ resourceType: 'PractitionerRole', id, practitioner: { reference: `Practitioner/${id.replace('r', 'p')}` } },
      ...more,
    });
    await mirrored(
      'kind=fhir',
      ndjson(
        ...['p-1', 'p-2', 'p-3', 'p-4', 'p-5'].map(practitioner),
        role('r-4', { active: false }),
        role('r-5', { period: { end: '2020' } }),
        patient('c-1'),
        team('c-1', 'Practitioner/p-2', { status: 'inactive', period: { start: '1991' } }),
        team('c-1', 'Practitioner/p-3', { status: 'active', period: { start: '1991', end: '1995' } }),
        team('c-1', 'PractitionerRole/r-4'),
        team('c-1', 'PractitionerRole/r-5'),
        encounter('c-1', 'Practitioner/p-1', '2026-10-01'),
        encounter('c-1', 'Practitioner/p-5', '2024-10-01'),
      ),
    );
    expect(await listOf('c-1')).toEqual(['p-1']);
  });

  test('are found by identifiers and roles of an earlier import', async () => {
    await mirrored('kind=fhir', ndjson(practitioner('p-1'), practitioner('p-2')));
    const role = {
      ...{ resourceType: 'PractitionerRole', id: 'r-2' },
      practitioner: { identifier: { system: NPI, value: 'npi-p-2' } },
    };
    await mirrored('kind=fhir', ndjson(patient('c-0', 'Practitioner/p-1'), role));
    await mirrored(
      'kind=fhir',
      ndjson(patient('c-1', `Practitioner?identifier=${NPI}|npi-p-1`, 'PractitionerRole/r-2')),
    );
    expect(await listOf('c-1')).toEqual(['p-1', 'p-2']);
  });

  test('are found in several files in any order, by identifiers that are the external ids', async () => {
    const mrn = 'urn:mrn';
    const person = (resourceType: string, id: string, system: string, value: string) => ({
      ...{ resourceType, id, identifier: [{ system, value }], name: [{ given: ['A'], family: value }] },
      telecom: [{ system: 'email', value: `${value}@example.org` }],
    });
    const files = [
      encounter('pat-1', `Practitioner?identifier=${NPI}|npi-1`),
      team('', 'PractitionerRole/role-2', {
        status: 'active',
        subject: { identifier: { system: mrn, value: 'mrn-1' } },
      }),
      person('Patient', 'pat-1', mrn, 'mrn-1'),
      {
        ...{ resourceType: 'PractitionerRole', id: 'role-2' },
        practitioner: { identifier: { system: NPI, value: 'npi-2' } },
      },
      person('Practitioner', 'prac-1', NPI, 'npi-1'),
      person('Practitioner', 'prac-2', NPI, 'npi-2'),
    ].map((resource, at) => file(String(at), [JSON.stringify(resource)]));
    const { counts } = await mirrored(`kind=fhir&idSystem=${encodeURIComponent(NPI)},${mrn}`, files);
    expect(counts).toMatchObject({ total: 3, created: 3 });
    expect(await listOf('mrn-1')).toEqual(['npi-2', 'npi-1']);
  });
});

describe('rejected rows', () => {
  test('name the form of a reference that leads nowhere, and keep the providers that were named', async () => {
    const { id } = await planned(
      'kind=fhir&dryRun=true',
      ndjson(practitioner('p-1'), patient('c-1', 'PractitionerRole/none'), patient('c-2'), {
        ...patient('c-3', 'Practitioner/p-1'),
        name: [{ text: 'Ada May Osei' }],
      }),
    );
    const shown = await rows(id, 'outcome=rejected&cells=true');
    expect(shown.map((row) => [row.externalId, row.code])).toEqual([
      ['c-1', 'unresolved-provider'],
      ['c-2', 'no-provider'],
      ['c-3', 'unsplit-name'],
    ]);
    expect(shown[0]?.hint).toContain('(PractitionerRole/…)');
    expect((await rejected(id)).join()).toContain('client,c-3,,,Ada May Osei,p-1,');
    const cells = { externalId: 'c-3', email: '', firstName: '', lastName: 'Ada May Osei', providers: 'p-1' };
    expect(shown[2]?.cells).toEqual(cells);
  });

  test('of FHIR come back as text/csv of the kind fhir', async () => {
    const { telecom: _, ...nameless } = practitioner('p-f');
    const resources = [nameless, patient('c-f', 'Practitioner/p-f')].map((one) => JSON.stringify(one)).join('\n');
    const first = await upload('kind=fhir', 'application/fhir+ndjson', resources);
    await world.work.imports();
    const csv = (await rejected(first.body.id)).join('\r\n').replace(/^(provider,p-f),,/m, '$1,p-f@example.org,');
    await upload('kind=fhir', 'text/csv', csv);
    await world.work.imports();
    expect(await listOf('c-f')).toEqual(['p-f']);
  });

  test('are shown with their cells, and come back corrected as JSON lines of both kinds', async () => {
    const csv = (name: string, content: string) => ({ name, type: 'text/csv', content });
    const first = await planned('kind=clients&dryRun=true', [
      csv('providers.csv', 'externalId;Surname;firstName;email\np-1;Osei;Ada;no mail'),
      csv('clients.csv', 'externalId,firstName,lastName,providers\nc-1,,Haddad,p-1|p-1'),
    ]);
    expect(first.files).toEqual([
      { name: 'providers.csv', kind: 'providers', format: 'csv', rows: 1 },
      { name: 'clients.csv', kind: 'clients', format: 'csv', rows: 1 },
    ]);
    expect((await rows(first.id, 'outcome=rejected&cells=true')).map(({ kind, cells }) => [kind, cells])).toEqual([
      ['provider', { externalId: 'p-1', email: 'no mail', firstName: 'Ada', lastName: 'Osei', providers: '' }],
      ['client', { externalId: 'c-1', email: '', firstName: '', lastName: 'Haddad', providers: 'p-1|p-1' }],
    ]);
    expect((await rows(first.id, 'outcome=rejected'))[0]).not.toHaveProperty('cells');
    const json = (name: string, person: object) => ({
      ...csv(name, JSON.stringify(person)),
      type: 'application/x-ndjson',
    });
    const second = await mirrored('kind=clients', [
      json('providers', { externalId: 'p-1', email: 'ada@clinic.example', firstName: 'Ada', lastName: 'Osei' }),
      json('clients', { externalId: 'c-1', firstName: 'Noor', lastName: 'Haddad', providers: ['p-1'] }),
    ]);
    expect(second.counts).toMatchObject({ total: 2, created: 2, rejected: 0 });
  });
});

describe('references', () => {
  const RUNS = propertyRuns(0.1).numRuns;
  const CLIENTS = ['c-1', 'c-2', 'c-3'];
  /** Languages put the last three into different orders. */
  const PROVIDERS = ['p-1', 'P-1', 'p-2', 'p 10', 'é', '\uff61', '\u{1f600}'];
  const CLIENT_KEYS = ['kc-1', 'kc-2', 'kc-3', 'kc-4', 'shared', 'nobody'];
  const PROVIDER_KEYS = ['kp-1', 'kp-2', 'kp-3', 'kp-4', 'kp-5', 'kp-6', 'shared', 'nobody'];
  const KNOWN_BEFORE = PROVIDERS.slice(0, 4);
  const keysOf = (externalId: string) => knownPersonKeys('provider', externalId);

  class StoppedClock extends Clock {
    override now(): Date {
      return NOW;
    }
  }

  const clientKey = fc.constantFrom(...CLIENT_KEYS);
  const key = fc.constantFrom(...PROVIDER_KEYS, ...KNOWN_BEFORE.flatMap(keysOf));
  const aliasOf = <Kind extends string>(kind: Kind, keys: fc.Arbitrary<string>, ids: string[]) =>
    fc.record({ type: fc.constant('alias'), kind: fc.constant(kind), key: keys, externalId: fc.constantFrom(...ids) });
  const alias = fc.oneof(aliasOf('provider', key, PROVIDERS), aliasOf('client', clientKey, CLIENTS));
  const moment = fc.option(
    fc
      .constantFrom(
        ...['0001-01-01', '2024-02-28', '2024-02-29T10:00:00.001Z', '2024-02-29T10:00:00.002Z'],
        ...['2025-02-28T10:00:00.001Z', '2025-02-28T10:00:00.002Z', '2025-02-28T10:00:00.003Z', '9999-12-31'],
      )
      .map((at) => new Date(at)),
    { nil: undefined },
  );
  const role = fc
    .record({ key, practitionerKey: key, ends: moment })
    .map(({ ends, ...rest }) => ({ type: 'role' as const, ...rest, ...(ends && { ends }) }));
  const rank = fc.constantFrom(1 as const, 2 as const, 3 as const);
  const link = fc
    .record({ clientKey, providerKey: key, rank, at: moment, ends: moment, position: fc.constantFrom(0, 0, 1) })
    .map(
      ({ at, ends, ...rest }): LinkReference => ({
        ...({ type: 'link', form: 'identifier', ...rest } as const),
        ...{ ...(at && { at }), ...(ends && { ends }) },
      }),
    );
  const facts = fc.array(fc.oneof(alias as fc.Arbitrary<ResourceReference>, role, link, link), {
    ...{ minLength: 20, maxLength: 60 },
  });
  /** The kind of import, and each client's providers before it. */
  const how = fc.record({
    mode: fc.constantFrom('upsert' as const, 'snapshot' as const),
    encounterSince: fc.constantFrom(null, null, new Date('2025-02-28T10:00:00.002Z')),
    had: fc.array(fc.shuffledSubarray(KNOWN_BEFORE), { minLength: 3, maxLength: 3 }),
  });

  test(`are resolved in SQL as the rule says (SEED=${SEED})`, async () => {
    const references = new ReferencesRepository(world.get(Vault), new StoppedClock());
    const staging = world.get(StagingRepository);
    const tx = await world.database.pool.connect();
    const [{ id } = { id: '' }] = await world.sql<{ id: string }>(NEW_IMPORT);
    await world.sql(
      `INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id)
       SELECT $1, n, 1, n, 'client', external_id FROM unnest($2::text[]) WITH ORDINALITY AS client(external_id, n)`,
      [id, CLIENTS],
    );
    for (const [kind, ids] of [['provider', KNOWN_BEFORE] as const, ['client', CLIENTS] as const])
      await world.sql(
        `INSERT INTO people (id, kind, external_id, profile, profile_hash)
         SELECT gen_random_uuid(), $1, external_id, '', '' FROM unnest($2::text[]) AS external_id`,
        [kind, ids],
      );
    const known = KNOWN_BEFORE.flatMap((externalId) =>
      keysOf(externalId).map((one): ResourceReference => ({ type: 'alias', kind: 'provider', key: one, externalId })),
    );
    let lists = 0;
    const property = fc.asyncProperty(facts, how, async (said, { mode, encounterSince, had }) => {
      await tx.query('ROLLBACK; BEGIN');
      await tx.query(
        `INSERT INTO client_providers (client_id, provider_id, position)
         SELECT c.id, p.id, n FROM unnest($1::text[]) WITH ORDINALITY AS client(external_id, c_no)
         JOIN jsonb_array_elements($2) WITH ORDINALITY AS list(ids, l_no) ON l_no = c_no
         CROSS JOIN jsonb_array_elements_text(ids) WITH ORDINALITY AS has(provider, n)
         JOIN people c ON c.kind = 'client' AND c.external_id = client.external_id
         JOIN people p ON p.kind = 'provider' AND p.external_id = has.provider`,
        [CLIENTS, JSON.stringify(had)],
      );
      await staging.storeReferences(tx, id, said);
      await references.resolve(tx, { id, idSystems: [], mode, encounterSince });
      const { rows: resolved } = await tx.query<{ id: string; providers: string[] }>(
        'SELECT external_id AS id, providers FROM import_rows WHERE import_id = $1 ORDER BY row_no',
        [id],
      );
      const found = resolveProviders([...said, ...known], { now: NOW, ...(encounterSince && { encounterSince }) });
      for (const [at, { id: client, providers }] of resolved.entries()) {
        const list = found.get(client);
        const wanted = mode === 'upsert' ? upsertedProviders(had[at] ?? [], list) : (list?.providers ?? []);
        expect([client, providers]).toEqual([client, list?.providers.length ? wanted : []]);
        if (providers.length > 1) lists += 1;
      }
    });
    await fc.assert(property, propertyRuns(0.1)).finally(() => tx.release(true));
    expect(lists).toBeGreaterThan(RUNS / 50);
  });

  test('hash the keys of known people a few at a time, even for many systems', async () => {
    const [vault, idSystems] = [world.get(Vault), Array.from({ length: 20 }, (_, n) => `urn:system:${n}`)];
    const fingerprint = jest.spyOn(vault, 'fingerprint');
    const hashed: number[] = [];
    let timer: NodeJS.Immediate;
    const count = () => {
      hashed.push(fingerprint.mock.calls.length);
      fingerprint.mockClear();
      timer = setImmediate(count);
    };
    const [{ id } = { id: '' }] = await world.sql<{ id: string }>(NEW_IMPORT);
    await world.sql(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash)
       SELECT gen_random_uuid(), 'provider', 'many-' || n, '', '' FROM generate_series(1, 500) AS n`,
    );
    await world.sql(
      `INSERT INTO import_references (import_id, reference_no, type, key, target) VALUES ($1, 1, 'role', 'a', 'b')`,
      [id],
    );
    const references = new ReferencesRepository(vault, new StoppedClock());
    count();
    await world
      .get(Database)
      .transaction((tx) => references.resolve(tx, { id, idSystems, mode: 'upsert', encounterSince: null }))
      .finally(() => clearImmediate(timer));
    hashed.push(fingerprint.mock.calls.length);
    fingerprint.mockRestore();
    expect(hashed.reduce((sum, one) => sum + one, 0)).toBe(500 * 20);
    // The answer to a statement and an immediate can both be handled between two counts.
    expect(Math.max(...hashed)).toBeLessThanOrEqual(2 * HASHES_AT_ONCE);
  });
});

describeWithSharedData('the sample exports', (folder) => {
  const [ten, thousand] = [path.join(folder, 'synthea-10'), path.join(folder, 'synthea-1000')];
  const filesOf = (place: string) =>
    readdirSync(place).map((name) => ({ ...file('', []), name, content: readFileSync(path.join(place, name)) }));
  const linesOf = (place: string, name: string) =>
    readFileSync(path.join(place, `${name}.000.ndjson`), 'utf8')
      .trim()
      .split('\n');
  const resourcesOf = <Resource>(name: string) => linesOf(ten, name).map((line) => JSON.parse(line) as Resource);

  interface Encounter {
    subject: { reference: string };
    period: { start: string };
    participant: { period: { start: string }; individual: { reference: string } }[];
  }

  test('give each client the providers of all its encounters, newest first', async () => {
    const { counts } = await mirrored('kind=fhir&encounterSince=1900-01-01', filesOf(ten));
    expect(counts).toMatchObject({ total: 56, created: 56 });
    const practitioners = resourcesOf<{ id: string; identifier: { system: string; value: string }[] }>('Practitioner');
    const idOf = new Map<string, string>(
      practitioners.flatMap(({ id, identifier }) =>
        identifier.map(({ system, value }) => [`Practitioner?identifier=${system}|${value}`, id] as const),
      ),
    );
    const last = new Map<string, Map<string, number>>();
    for (const { subject, participant } of resourcesOf<Encounter>('Encounter')) {
      const client = subject.reference.replace('Patient/', '');
      const seen = last.get(client) ?? new Map<string, number>();
      last.set(client, seen);
      for (const { individual, period } of participant) {
        const provider = idOf.get(individual.reference) ?? '';
        seen.set(provider, Math.max(seen.get(provider) ?? 0, Date.parse(period.start)));
      }
    }
    expect(last.size).toBe(13);
    for (const [client, seen] of last) {
      const providers = [...seen].sort((a, b) => b[1] - a[1]).map(([provider]) => provider);
      expect([client, await listOf(client)]).toEqual([client, providers]);
    }
  });

  test('by default name providers of encounters in the year before the newest', async () => {
    const plan = await planned('kind=fhir&dryRun=true', filesOf(ten));
    const starts = resourcesOf<Encounter>('Encounter').map(({ subject, period }) => ({
      client: subject.reference,
      at: Date.parse(period.start),
    }));
    const since = Math.max(...starts.map(({ at }) => at)) - 365 * 86_400_000;
    const lately = new Set(starts.filter(({ at }) => at >= since).map(({ client }) => client));
    expect(plan.planned).toMatchObject({ 'create-or-link': 43 + lately.size, rejected: 13 - lately.size });
  });

  test('without a default provider have each patient rejected, by name of the fault', async () => {
    const plan = await planned('kind=fhir&dryRun=true', filesOf(thousand));
    // Two practitioners of the sample share one email, and the emails of seven have a blank in them.
    expect(plan.planned).toEqual({ 'create-or-link': 827, 'needs-review': 1, rejected: 1_144 + 7 });
    const faults = (await rows(plan.id, 'outcome=rejected')).map(({ kind, code, field }) => `${kind} ${code} ${field}`);
    expect(faults.filter((fault) => fault === 'client no-provider providers')).toHaveLength(1_144);
    expect(faults.filter((fault) => fault === 'provider bad-email email')).toHaveLength(7);
    expect((await rejected(plan.id)).length).toBeGreaterThan(1_144);
  });

  test('with all their faults come to what was planned, and make no call when they come again', async () => {
    const email = (line: string) =>
      (JSON.parse(line) as { telecom: { system: string; value: string }[] }).telecom.find(
        ({ system }) => system === 'email',
      )?.value ?? '';
    const practitioners = linesOf(thousand, 'Practitioner');
    const emails = practitioners.map(email);
    const isSound = (line: string) =>
      !/\s/.test(email(line)) && emails.filter((one) => one === email(line)).length === 1;
    const sound = practitioners.filter(isSound).slice(0, 5);
    const files = [
      file('Patient', linesOf(thousand, 'Patient').slice(0, 6)),
      file('Practitioner', [...sound, ...practitioners.filter((line) => !isSound(line))]),
      file('PractitionerRole', linesOf(thousand, 'PractitionerRole')),
    ];
    const run = async (query: string) => {
      const dry = await planned(`${query}&dryRun=true`, files);
      const { id, counts } = await imported(query, files);
      const [plan, come] = [await rows(dry.id), await rows(id)];
      expect(come).toHaveLength(counts.total);
      const surprises = come.filter(
        ({ externalId, outcome }, at) =>
          plan[at]?.externalId !== externalId || !OUTCOMES_OF_PLAN[plan[at]?.planned ?? '']?.includes(outcome),
      );
      expect(surprises).toEqual([]);
      return counts;
    };
    expect(await run('kind=fhir')).toMatchObject({ total: 20, created: 6, needsReview: 1, rejected: 6 + 7 });
    const query = `kind=fhir&defaultProvider=${(JSON.parse(sound[0] ?? '') as { id: string }).id}`;
    expect(await run(query)).toMatchObject({ total: 20, created: 6, unchanged: 6, needsReview: 1, rejected: 7 });
    const { users } = world.platform.simulator.state;
    expect([users.list().length, users.duplicates()]).toEqual([6 + 6, { partnerUserIds: [], emails: [] }]);
    const before = world.platform.arrivals();
    expect(await run(query)).toMatchObject({ total: 20, unchanged: 12, needsReview: 1, rejected: 7 });
    expect(world.platform.arrivals()).toBe(before);
  });
});
