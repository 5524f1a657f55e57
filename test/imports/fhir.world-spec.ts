import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { ImportFile } from '../../harness/service.js';
import { clientsCsv, OUTCOMES_OF_PLAN, providerLine, providersCsv } from '../support/bulk.js';
import { describeWithSharedData } from '../support/shared-data.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';

const NPI = 'http://hl7.org/fhir/sid/us-npi';

const world = useWorld();
const { imported, mirrored, planned, upload, start, transition, ended, rows, outcomes, rejected } = importsIn(world);

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
/** A day before the world's today: tests that share the world may have moved its clock by years. */
const daysAgo = (days: number) => new Date(world.now().getTime() - days * 86_400_000).toISOString().slice(0, 10);
const encounter = (client: string, provider: string, day = daysAgo(26)) => ({
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

  test('are extended by encounters and teams, replaced by general practitioners, or unchanged', async () => {
    await mirrored('', ndjson(...all, patient('c-1', 'Practitioner/p-1', 'Practitioner/p-2')));
    const send = async (query: string, ...resources: object[]) => {
      await mirrored(query, ndjson(...resources));
      return listOf('c-1');
    };
    const added = await send('', patient('c-1'), encounter('c-1', 'Practitioner/p-3'));
    const renamed = { ...patient('c-1'), name: [{ family: 'Roe', given: ['Cleo'] }] };
    const kept = await send('defaultProvider=p-3', renamed);
    const replaced = await send('', patient('c-1', 'Practitioner/p-3'), team('c-1', 'Practitioner/p-1'));
    expect([added, kept, replaced]).toEqual([
      ['p-1', 'p-2', 'p-3'],
      ['p-1', 'p-2', 'p-3'],
      ['p-3', 'p-1'],
    ]);
    const { id } = await planned('mode=snapshot', ndjson(...all, patient('c-1'), encounter('c-1', 'Practitioner/p-2')));
    expect((await transition(id, 'apply', ['providerRemovals'])).status).toBe(202);
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

  test('include none of care that has ended', async () => {
    const role = (id: string, more: object) => ({
      ...{ resourceType: 'PractitionerRole', id, practitioner: { reference: `Practitioner/${id.replace('r', 'p')}` } },
      ...more,
    });
    await mirrored(
      '',
      ndjson(
        ...['p-1', 'p-2', 'p-3', 'p-4', 'p-5'].map(practitioner),
        role('r-4', { active: false }),
        role('r-5', { period: { end: '2020' } }),
        patient('c-1'),
        team('c-1', 'Practitioner/p-2', { status: 'inactive', period: { start: '1991' } }),
        team('c-1', 'Practitioner/p-3', { status: 'active', period: { start: '1991', end: '1995' } }),
        team('c-1', 'PractitionerRole/r-4'),
        team('c-1', 'PractitionerRole/r-5'),
        encounter('c-1', 'Practitioner/p-1', daysAgo(57)),
        encounter('c-1', 'Practitioner/p-5', daysAgo(787)),
      ),
    );
    expect(await listOf('c-1')).toEqual(['p-1']);
  });

  test('are found among known people by their ids, and counted as lost otherwise', async () => {
    await mirrored('', ndjson(practitioner('p-1')));
    const view = await mirrored(
      '',
      ndjson(
        patient('c-1', 'Practitioner/p-1', 'Practitioner/p-9'),
        patient('c-2', `Practitioner?identifier=${NPI}|npi-p-1`),
      ),
    );
    expect([await listOf('c-1'), view.lostProviders]).toEqual([['p-1'], 2]);
    expect(await rows(view.id, 'outcome=rejected')).toMatchObject([{ externalId: 'c-2', code: 'unresolved-provider' }]);
  });

  test('are found among known people by identifiers that are the external ids', async () => {
    const system = encodeURIComponent(NPI);
    await mirrored(`idSystem=${system}`, ndjson(practitioner('p-1')));
    const client = {
      ...patient('c-1', `Practitioner?identifier=${NPI}|npi-p-1`),
      identifier: [{ system: NPI, value: 'c-1' }],
    };
    await mirrored(`idSystem=${system}`, ndjson(client));
    expect(await listOf('c-1')).toEqual(['npi-p-1']);
  });

  test('are none of another server', async () => {
    const view = await mirrored(
      '',
      ndjson(practitioner('p-1'), patient('c-1', 'https://other.example/fhir/Practitioner/p-1')),
    );
    const [row] = await rows(view.id, 'outcome=rejected');
    expect([row?.externalId, row?.hint]).toEqual(['c-1', expect.stringContaining('another server')]);
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
    const { counts } = await mirrored(`idSystem=${encodeURIComponent(NPI)},${mrn}`, files);
    expect(counts).toMatchObject({ total: 3, created: 3 });
    expect(await listOf('mrn-1')).toEqual(['npi-2', 'npi-1']);
  });
});

describe('resources', () => {
  const bundle = (type: string, entry: object[], more: object = {}): ImportFile => ({
    ...{ name: 'bundle.json', type: 'application/fhir+json' },
    content: JSON.stringify({ resourceType: 'Bundle', type, ...more, entry }),
  });
  const put = (resource: { resourceType: string; id: string }, minute: number) => ({
    resource: { ...resource, meta: { lastUpdated: `2026-11-01T10:${minute}:00Z` } },
    request: { method: 'PUT', url: `${resource.resourceType}/${resource.id}` },
  });
  const remove = (url: string, minute: number) => ({
    request: { method: 'DELETE', url },
    response: { lastModified: `2026-11-01T10:${minute}:00Z` },
  });

  test('use the newest entry of a history; deletions of known people wait for the guard', async () => {
    const gp = 'Practitioner/p-1';
    await imported('', ndjson(practitioner('p-1'), patient('c-1', gp), patient('c-2', gp)));
    const renamed = { ...patient('c-2', gp), name: [{ family: 'New', given: ['Cleo'] }] };
    const plan = await planned('', [
      bundle('history', [
        remove('Patient/c-1', 30),
        put(renamed, 20),
        put(patient('c-2', gp), 10),
        remove('Patient/c-3', 20),
        put(patient('c-3', gp), 10),
        put(patient('c-4', gp), 30),
        remove('Patient/c-4', 20),
      ]),
    ]);
    expect(plan).toMatchObject({
      guards: expect.arrayContaining([expect.objectContaining({ name: 'deletes', exceeded: true })]),
    });
    await ended(plan.id, 'apply', ['deletes']);
    expect(await outcomes(plan.id)).toEqual([
      ['c-1', 'deleted', null],
      ['c-2', 'updated', 'not-pushable'],
      ['c-2', 'skipped', 'older-version'],
      ['c-3', 'skipped', 'already-deleted'],
      ['c-3', 'skipped', 'older-version'],
      ['c-4', 'created', null],
      ['c-4', 'skipped', 'older-version'],
    ]);
    expect(['c-1', 'c-3', 'c-4'].map((id) => world.platform.usersOf(id).length)).toEqual([0, 0, 1]);
  });

  test('count once if they are equal; of several versions, the latest counts', async () => {
    const version = (family: string, lastUpdated: string) => ({
      ...patient('c-1', 'Practitioner/p-1'),
      ...{ name: [{ family, given: ['Cleo'] }], meta: { lastUpdated } },
    });
    const { id } = await imported(
      '',
      ndjson(
        ...[practitioner('p-1'), practitioner('p-1')],
        ...[version('New', '2026-02-01T00:00:00Z'), version('Old', '2026-01-01T00:00:00Z')],
      ),
    );
    expect(await outcomes(id)).toEqual([
      ['p-1', 'created', null],
      ['p-1', 'skipped', 'repeated'],
      ['c-1', 'created', null],
      ['c-1', 'skipped', 'older-version'],
    ]);
    expect(world.platform.usersOf('c-1')).toMatchObject([{ lastName: 'New' }]);
  });

  test('change only the parts that they contain', async () => {
    await mirrored('', ndjson(practitioner('p-1'), practitioner('p-2'), patient('c-1', 'Practitioner/p-1')));
    const tagged = { meta: { tag: [{ code: 'SUBSETTED' }] } };
    const { telecom: _, ...nameOnly } = { ...practitioner('p-1'), ...tagged, name: [{ family: 'New' }] };
    const idOnly = { resourceType: 'Patient', id: 'c-1', ...tagged };
    const { id } = await mirrored('', ndjson(nameOnly, idOnly, { ...idOnly, id: 'c-9' }));
    expect(await outcomes(id)).toEqual([
      ['p-1', 'updated', 'not-pushable'],
      ['c-1', 'unchanged', null],
      ['c-9', 'rejected', 'missing-field'],
    ]);
    const known = (await world.call('GET', '/v1/providers/p-1')).body;
    expect([known, await listOf('c-1')]).toMatchObject([
      { firstName: 'Pia', lastName: 'New', email: 'p-1@example.org' },
      ['p-1'],
    ]);
  });

  test('may have a photo of a megabyte', async () => {
    const photo = [{ contentType: 'image/jpeg', data: 'A'.repeat(1.4 * 1024 * 1024) }];
    const { counts } = await mirrored(
      '',
      ndjson({ ...practitioner('p-1'), photo }, { ...patient('c-1', 'Practitioner/p-1'), photo }),
    );
    expect(counts).toMatchObject({ total: 2, created: 2 });
  });

  test('are skipped if people are inactive or deceased; known people stay unchanged', async () => {
    await mirrored('', ndjson(practitioner('p-1'), patient('c-1', 'Practitioner/p-1')));
    const { id } = await planned(
      'mode=snapshot',
      ndjson(
        { ...practitioner('p-1'), active: false },
        { ...patient('c-1'), deceasedDateTime: '2026-01-01' },
        { ...patient('c-2', 'Practitioner/p-1'), deceasedBoolean: true },
      ),
    );
    expect(await outcomes(id)).toEqual([
      ['p-1', 'unchanged', 'inactive'],
      ['c-1', 'unchanged', 'inactive'],
      ['c-2', 'skipped', 'inactive'],
    ]);
  });

  test('on the pages of one search are one snapshot, which is refused while a page is missing', async () => {
    const url = (page: number) => `https://ehr.example/fhir/Patient?page=${page}`;
    const page = (at: number, ...entries: object[]) => {
      const links = [
        { relation: 'self', url: url(at) },
        ...(at < 2 ? [{ relation: 'next', url: url(at + 1) }] : []),
        ...(at > 1 ? [{ relation: 'previous', url: url(at - 1) }] : []),
      ];
      const entry = entries.map((resource) => ({ resource }));
      return { ...bundle('searchset', entry, { link: links }), name: `page-${at}.json` };
    };
    const [first, second] = [page(1, practitioner('p-1')), page(2, patient('c-1', 'Practitioner/p-1'))];
    await expect(start('mode=snapshot', [first])).rejects.toThrow(/page-1\.json is one page of a search/);
    await expect(start('mode=snapshot', [second])).rejects.toThrow(/the page before it is missing/);
    const { counts } = await planned('mode=snapshot', [second, first]);
    expect(counts).toMatchObject({ total: 2, pending: 2 });
  });
});

describe('rejected rows', () => {
  test('state why a reference matches no one, and keep the named providers', async () => {
    const { id } = await planned(
      'dryRun=true',
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
    expect(shown[0]?.hint).toContain('leads to no known practitioner');
    expect((await rejected(id)).join()).toContain('client,c-3,,,Ada May Osei,p-1,,resources.ndjson,4,unsplit-name,');
    expect(shown[2]?.cells).toMatchObject({ externalId: 'c-3', lastName: 'Ada May Osei', providers: 'p-1' });
  });

  test('come back corrected as CSV', async () => {
    const { telecom: _, ...withoutEmail } = practitioner('p-f');
    const first = await start('', ndjson(withoutEmail, patient('c-f', 'Practitioner/p-f')));
    await world.work.imports();
    const [header, provider = '', client = ''] = await rejected(first);
    const corrected = [
      ...[header, provider.replace('p-f,,', 'p-f,p-f@example.org,').replace('missing-field', '')],
      client.replace('c-f,,Cleo,c-f,', 'c-f,,Cleo,c-f,p-f').replace('unresolved-provider', ''),
    ];
    await upload('', 'text/csv', corrected.join('\r\n'));
    await world.settle();
    expect(await listOf('c-f')).toEqual(['p-f']);
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

  /** Deceased patients of the ten. */
  const DECEASED = 3;

  test('give each client the providers of all its encounters, newest first', async () => {
    const { id, counts } = await mirrored('encounterSince=1900-01-01', filesOf(ten));
    expect(counts).toMatchObject({ total: 56, created: 56 - DECEASED, skipped: DECEASED });
    const gone = (await rows(id, 'outcome=skipped')).map(({ externalId }) => externalId);
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
      if (gone.includes(client)) continue;
      const providers = [...seen].sort((a, b) => b[1] - a[1]).map(([provider]) => provider);
      expect([client, await listOf(client)]).toEqual([client, providers]);
    }
  });

  test('give no access by old encounters', async () => {
    const plan = await planned('dryRun=true', filesOf(ten));
    expect(plan.planned).toEqual({ 'create-or-link': 43, rejected: 13 - DECEASED });
    const [row] = await rows(plan.id, 'outcome=rejected');
    expect(row).toMatchObject({ kind: 'client', code: 'no-provider', field: 'providers' });
  });

  test('without a default provider have each patient rejected, and name the reason', async () => {
    const plan = await planned('dryRun=true', filesOf(thousand));
    // Two practitioners of the sample share one email, and the emails of seven contain a blank.
    expect(plan.planned).toEqual({ 'create-or-link': 827, 'needs-review': 1, rejected: 1_000 + 7 });
    expect(plan.counts).toMatchObject({ skipped: 144, rejected: 1_000 + 7 });
    expect(plan.reasons).toEqual([
      { outcome: 'rejected', code: 'no-provider', rows: 1_000 },
      { outcome: 'skipped', code: 'inactive', rows: 144 },
      { outcome: 'rejected', code: 'bad-email', rows: 7 },
    ]);
    expect((await rejected(plan.id)).length).toBe(1_000 + 7 + 1);
  });

  test('with all their faults come to what was planned, and make no call when they come again', async () => {
    const email = (line: string) =>
      (JSON.parse(line) as { telecom: { system: string; value: string }[] }).telecom.find(
        ({ system }) => system === 'email',
      )?.value ?? '';
    const practitioners = linesOf(thousand, 'Practitioner');
    const living = linesOf(thousand, 'Patient').filter((line) => !line.includes('deceasedDateTime'));
    const emails = practitioners.map(email);
    const isSound = (line: string) => {
      const own = email(line);
      return !/\s/.test(own) && emails.filter((one) => one === own).length === 1;
    };
    const sound = practitioners.filter(isSound).slice(0, 5);
    const files = [
      file('Patient', living.slice(0, 6)),
      file('Practitioner', [...sound, ...practitioners.filter((line) => !isSound(line))]),
      file('PractitionerRole', linesOf(thousand, 'PractitionerRole')),
    ];
    const run = async (query: string) => {
      const dry = await planned(`dryRun=true${query}`, files);
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
    expect(await run('')).toMatchObject({ total: 20, created: 6, needsReview: 1, rejected: 6 + 7 });
    const query = `&defaultProvider=${(JSON.parse(sound[0] ?? '') as { id: string }).id}`;
    expect(await run(query)).toMatchObject({ total: 20, created: 6, unchanged: 6, needsReview: 1, rejected: 7 });
    const { users } = world.platform.simulator.state;
    expect([users.list().length, users.duplicates()]).toEqual([6 + 6, { partnerUserIds: [], emails: [] }]);
    const before = world.platform.arrivals();
    expect(await run(query)).toMatchObject({ total: 20, unchanged: 12, needsReview: 1, rejected: 7 });
    expect(world.platform.arrivals()).toBe(before);
  });
});
