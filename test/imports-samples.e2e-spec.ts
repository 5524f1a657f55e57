import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type ImportFile, type Service, sumOfOutcomes } from '../harness/service.js';
import type { Page } from '../src/http/request/page.js';
import type { ImportResponse } from '../src/imports/report/import-view.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import { OUTCOMES_OF_PLAN, planned, rejectedCsv, rowsOf } from './support/bulk.js';
import { describeWithSharedData } from './support/shared-data.js';
import { useSharedService } from './support/shared-service.js';

function filesOf(folder: string): ImportFile[] {
  const type = 'application/fhir+ndjson';
  return readdirSync(folder).map((name) => ({ name, type, content: readFileSync(path.join(folder, name)) }));
}

const linesOf = (folder: string, name: string): string[] =>
  readFileSync(path.join(folder, name), 'utf8').trim().split('\n');

function resourcesOf<Resource>(folder: string, name: string): Resource[] {
  return linesOf(folder, name).map((line) => JSON.parse(line) as Resource);
}

/** Plans an import, runs it, and expects each row to come to what was planned for it. */
async function runAsPlanned(service: Service, query: string, files: ImportFile[]): Promise<ImportResponse> {
  const dry = await planned(service, `${query}&dryRun=true`, files);
  const { id } = await service.startImport(query, files);
  const ended = await service.importEnded(id);
  const [plan, come] = [await rowsOf(service, dry.id), await rowsOf(service, id)];
  expect(come).toHaveLength(ended.counts.total);
  expect(sumOfOutcomes(ended)).toBe(ended.counts.total);
  const surprises = come.filter(({ externalId, outcome }, at) => {
    const row = plan[at];
    return row?.externalId !== externalId || !OUTCOMES_OF_PLAN[row.planned ?? '']?.includes(outcome);
  });
  expect(surprises).toEqual([]);
  return ended;
}

describeWithSharedData('of the sample exports', (folder) => {
  const [ten, thousand] = [path.join(folder, 'synthea-10'), path.join(folder, 'synthea-1000')];
  // A call whose answer a stalled machine makes late would be made twice, and counted so.
  const shared = useSharedService({ calls: 60_000, env: { PLATFORM_TIMEOUT_SECONDS: '60' } });

  test('synthea-10 is mirrored with the providers of each client from all its encounters, the latest first', async () => {
    const { mirror, service } = shared;
    const ended = await runAsPlanned(service, 'kind=fhir&encounterSince=1900-01-01', filesOf(ten));
    expect(ended.counts).toMatchObject({ total: 56, created: 56 });

    const wanted = providersByEncounters(ten);
    expect(wanted.size).toBe(13);
    for (const [client, providers] of wanted) {
      const { body } = await service.call<PersonResponse>('GET', `/v1/clients/${client}`);
      expect([client, body.providers]).toEqual([client, providers]);
      const platformIds = providers.map((provider) => mirror.usersOf(provider)[0]?.userId);
      expect(mirror.usersOf(client)).toMatchObject([{ providerUserIds: platformIds }]);
    }
  });

  test('synthea-10 names of its encounters those of the year before its newest', async () => {
    const { service } = shared;
    const plan = await planned(service, 'kind=fhir&dryRun=true', filesOf(ten));
    const starts = resourcesOf<{ subject: { reference: string }; period: { start: string } }>(
      ten,
      'Encounter.000.ndjson',
    ).map(({ subject, period }) => ({
      client: subject.reference.replace('Patient/', ''),
      at: Date.parse(period.start),
    }));
    const since = Math.max(...starts.map(({ at }) => at)) - 365 * 86_400_000;
    const lately = new Set(starts.filter(({ at }) => at >= since).map(({ client }) => client));
    expect(plan.planned).toMatchObject({ 'create-or-link': 43 + lately.size, rejected: 13 - lately.size });
  });

  test('synthea-1000 without a default provider has each patient rejected by name of the fault', async () => {
    const { mirror, service } = shared;
    const plan = await planned(service, 'kind=fhir&dryRun=true', filesOf(thousand));
    // Two practitioners of the sample share one email, and the emails of seven have a blank in them.
    expect(plan.planned).toEqual({ 'create-or-link': 827, 'needs-review': 1, rejected: 1_144 + 7 });
    expect([plan.counts.total, plan.counts.rejected, mirror.arrivals()]).toEqual([1_979, 1_144 + 7, 0]);
    const rows = await rowsOf(service, plan.id, 'outcome=rejected');
    const faults = rows.map(({ kind, code, field }) => `${kind} ${code} ${field}`);
    expect(faults.filter((fault) => fault === 'client no-provider providers')).toHaveLength(1_144);
    expect(new Set(faults.filter((fault) => fault.startsWith('provider')))).toEqual(
      new Set(['provider bad-email email']),
    );
    expect((await rejectedCsv(service, plan.id)).trim().split('\n').length).toBeGreaterThan(1_144);
  });

  test('a part of synthea-1000 with all its faults comes to what was planned, and once more makes no call', async () => {
    const { mirror, service } = shared;
    const files = partOf(thousand);
    const first = await runAsPlanned(service, 'kind=fhir', files);
    expect(first.counts).toMatchObject({ total: 206, created: 98, needsReview: 1, rejected: 100 + 7 });

    const provider = (await service.call<Page<PersonResponse>>('GET', '/v1/providers?state=synced&limit=1')).body
      .items[0];
    const query = `kind=fhir&defaultProvider=${provider?.externalId}`;
    const second = await runAsPlanned(service, query, files);
    expect(second.counts).toMatchObject({ total: 206, created: 100, unchanged: 98, needsReview: 1, rejected: 7 });
    expect(mirror.simulator.state.users.list()).toHaveLength(98 + 100);
    expect(mirror.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });

    const before = mirror.arrivals();
    const third = await runAsPlanned(service, query, files);
    expect(third.counts).toMatchObject({ total: 206, unchanged: 198, needsReview: 1, rejected: 7 });
    expect([mirror.arrivals() - before, third.calls.made]).toEqual([0, 0]);
  });
});

/** The first hundred patients, and of the practitioners about as many, with everybody at fault among them. */
function partOf(folder: string): ImportFile[] {
  const emailOf = (line: string) => {
    const { telecom } = JSON.parse(line) as { telecom: { system: string; value: string }[] };
    return telecom.find(({ system }) => system === 'email')?.value ?? '';
  };
  const practitioners = linesOf(folder, 'Practitioner.000.ndjson').map((line) => ({ line, email: emailOf(line) }));
  const sharing = (email: string) => practitioners.filter((other) => other.email === email).length > 1;
  const [sound, atFault] = [true, false].map((wanted) =>
    practitioners.filter(({ email }) => (!/\s/.test(email) && !sharing(email)) === wanted),
  );
  const file = (name: string, lines: string[]): ImportFile => ({
    name: `${name}.ndjson`,
    type: 'application/fhir+ndjson',
    content: lines.join('\n'),
  });
  return [
    file('Patient', linesOf(folder, 'Patient.000.ndjson').slice(0, 100)),
    file(
      'Practitioner',
      [...(sound ?? []).slice(0, 97), ...(atFault ?? [])].map(({ line }) => line),
    ),
    file('PractitionerRole', linesOf(folder, 'PractitionerRole.000.ndjson')),
  ];
}

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
