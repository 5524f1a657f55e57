import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type ImportFile, type Service, sumOfOutcomes } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { Page } from '../src/http/page.js';
import type { ImportRowView } from '../src/imports/import-rows.service.js';
import type { ImportView } from '../src/imports/import-view.js';
import type { PersonView } from '../src/people/person-view.js';
import { type Mirror, useMirrors } from './support/service.js';
import { describeWithSharedData } from './support/shared-data.js';

const newMirror = useMirrors();

function filesOf(folder: string): ImportFile[] {
  const type = 'application/fhir+ndjson';
  return readdirSync(folder).map((name) => ({ name, type, content: readFileSync(path.join(folder, name)) }));
}

function resourcesOf<Resource>(folder: string, name: string): Resource[] {
  const lines = readFileSync(path.join(folder, name), 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as Resource);
}

async function rowsOf(service: Service, id: string): Promise<ImportRowView[]> {
  const rows: ImportRowView[] = [];
  let cursor = '';
  do {
    const { body } = await service.call<Page<ImportRowView>>('GET', `/v1/imports/${id}/rows?limit=200${cursor}`);
    rows.push(...body.items);
    cursor = body.nextCursor ? `&cursor=${encodeURIComponent(body.nextCursor)}` : '';
  } while (cursor);
  return rows;
}

/** What a planned row may come to: whether somebody is created or linked only the check can tell. */
const COMES_TO: Record<string, string[]> = {
  'create-or-link': ['created', 'linked'],
  'provider-change': ['updated'],
  'attribute-change': ['updated'],
  'needs-review': ['needsReview'],
  unchanged: ['unchanged'],
  rejected: ['rejected'],
};

/** Plans an import, runs it, and expects each row to come to what was planned for it. */
async function runAsPlanned(service: Service, query: string, files: ImportFile[]): Promise<ImportView> {
  const dry = await service.startImport(`${query}&dryRun=true`, files);
  await until('it is planned', async () => {
    const { body } = await service.call<ImportView>('GET', `/v1/imports/${dry.id}`, { wait: 60 });
    return body.state === 'planned';
  });
  const { id } = await service.startImport(query, files);
  const ended = await service.importEnded(id);
  const [planned, come] = [await rowsOf(service, dry.id), await rowsOf(service, id)];
  expect(come).toHaveLength(ended.counts.total);
  expect(sumOfOutcomes(ended)).toBe(ended.counts.total);
  const surprises = come.filter((row, at) => {
    const plan = planned[at];
    return plan?.externalId !== row.externalId || !COMES_TO[plan.planned ?? '']?.includes(row.outcome);
  });
  expect(surprises).toEqual([]);
  return ended;
}

describeWithSharedData('the export synthea-10', (folder) => {
  const sample = path.join(folder, 'synthea-10');

  test('is mirrored with the providers of each client from its encounters, the latest first', async () => {
    const mirror = await newMirror({ calls: 60_000 });
    const service = await mirror.start();
    const ended = await runAsPlanned(service, 'kind=fhir', filesOf(sample));
    expect(ended.counts).toMatchObject({ total: 56, created: 56 });

    const wanted = providersByEncounters(sample);
    expect(wanted.size).toBe(13);
    for (const [client, providers] of wanted) {
      const { body } = await service.call<PersonView>('GET', `/v1/clients/${client}`);
      expect([client, body.providers]).toEqual([client, providers]);
      const platformIds = providers.map((provider) => mirror.usersOf(provider)[0]?.userId);
      expect(mirror.usersOf(client)).toMatchObject([{ providerUserIds: platformIds }]);
    }
  });
});

/** The same answer by other means: each client's providers by their last encounter. */
function providersByEncounters(folder: string): Map<string, string[]> {
  interface Practitioner {
    id: string;
    identifier: { system: string; value: string }[];
  }
  interface Encounter {
    subject: { reference: string };
    participant: { period: { start: string }; individual: { reference: string } }[];
  }
  const byIdentifier = new Map<string, string>(
    resourcesOf<Practitioner>(folder, 'Practitioner.000.ndjson').flatMap(({ id, identifier }) =>
      identifier.map(({ system, value }) => [`Practitioner?identifier=${system}|${value}`, id] as const),
    ),
  );
  const last = new Map<string, Map<string, number>>();
  for (const { subject, participant } of resourcesOf<Encounter>(folder, 'Encounter.000.ndjson')) {
    const client = subject.reference.replace('Patient/', '');
    for (const { individual, period } of participant) {
      const provider = byIdentifier.get(individual.reference) ?? '';
      const seen = last.get(client) ?? new Map<string, number>();
      seen.set(provider, Math.max(seen.get(provider) ?? 0, Date.parse(period.start)));
      last.set(client, seen);
    }
  }
  const latestFirst = (seen: Map<string, number>) =>
    [...seen].sort((a, b) => b[1] - a[1]).map(([provider]) => provider);
  return new Map([...last].map(([client, seen]) => [client, latestFirst(seen)]));
}

describeWithSharedData('the export synthea-1000', (folder) => {
  const files = () => filesOf(path.join(folder, 'synthea-1000'));
  let mirror: Mirror;
  let service: Service;
  beforeAll(async () => {
    mirror = await newMirror({ calls: 60_000 });
    service = await mirror.start();
  });

  test('without a default provider mirrors the practitioners, and rejects each patient by name of the fault', async () => {
    const ended = await runAsPlanned(service, 'kind=fhir', files());
    // Two practitioners of the sample share one email, and the emails of seven have a blank in them.
    expect(ended.counts).toMatchObject({ total: 1_979, created: 827, needsReview: 1, rejected: 1_144 + 7 });
    const rows = (await rowsOf(service, ended.id)).filter(({ outcome }) => outcome === 'rejected');
    const faults = rows.map(({ kind, code, field }) => `${kind} ${code} ${field}`);
    expect(faults.filter((fault) => fault === 'client no-provider providers')).toHaveLength(1_144);
    expect(new Set(faults.filter((fault) => fault.startsWith('provider')))).toEqual(
      new Set(['provider bad-email email']),
    );
    const rejected = await fetch(`${service.url}/v1/imports/${ended.id}/rejected.csv`, {
      headers: { authorization: 'Bearer admin-key-of-the-tests' },
    });
    expect((await rejected.text()).trim().split('\n').length).toBeGreaterThan(1_144);
  });

  test('with a default provider mirrors the patients, too', async () => {
    const provider = (await service.call<Page<PersonView>>('GET', '/v1/providers?state=synced&limit=1')).body.items[0];
    const ended = await runAsPlanned(service, `kind=fhir&defaultProvider=${provider?.externalId}`, files());
    expect(ended.counts).toMatchObject({ total: 1_979, created: 1_144, unchanged: 827, needsReview: 1, rejected: 7 });
    expect(mirror.simulator.state.users.list()).toHaveLength(827 + 1_144);
    expect(mirror.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
  });

  test('imported once more makes no call at all', async () => {
    const provider = (await service.call<Page<PersonView>>('GET', '/v1/providers?state=synced&limit=1')).body.items[0];
    const before = mirror.arrivals();
    const ended = await runAsPlanned(service, `kind=fhir&defaultProvider=${provider?.externalId}`, files());
    expect(ended.counts).toMatchObject({ total: 1_979, unchanged: 1_971, needsReview: 1, rejected: 7 });
    expect([mirror.arrivals() - before, ended.calls.made]).toEqual([0, 0]);
  });
});
