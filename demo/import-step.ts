import { readFileSync } from 'node:fs';
import path from 'node:path';
import { withQuery } from '../src/cli/api/api.js';
import { formOf } from '../src/cli/import/import-files.js';
import { watchImport } from '../src/cli/import/import-watch.js';
import { counted, duration } from '../src/cli/output/print.js';
import { LiveLine } from '../src/cli/output/progress.js';
import type { ImportResponse } from '../src/imports/api/import-view.js';
import type { ImportRowView } from '../src/imports/api/imports.dto.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import { CALLS_PER_MINUTE, ROOT } from './settings.js';
import { type Stage, tell, title } from './stage.js';

const FILES = ['providers.csv', 'clients.csv'].map((name) => path.join(ROOT, 'demo/data', name));

/** Providers who have an account on the platform before the EHR is connected. */
const KNOWN_PROVIDERS = ['P-103', 'P-108'];

/** Two providers are on the platform already, as in real life: they must be found, not made twice. */
export async function platformBefore({ platform }: Stage): Promise<void> {
  title(`The platform already knows two of the EHR's providers: ${KNOWN_PROVIDERS.join(' and ')}.`);
  const lines = readFileSync(FILES[0] ?? '', 'utf8').split('\n');
  for (const line of lines) {
    const [externalId = '', email, firstName, lastName] = line.trim().split(',');
    if (!KNOWN_PROVIDERS.includes(externalId)) continue;
    await platform.addUser({ role: 'HealthcareProvider', email, firstName, lastName });
  }
}

/** The EHR's export comes across. */
export async function firstImport(stage: Stage): Promise<void> {
  title('The export of the EHR is imported: demo/data/providers.csv and demo/data/clients.csv.');
  const view = await importOnce(stage);
  const seconds = (Number(new Date(view.finishedAt ?? Number.NaN)) - Number(new Date(view.createdAt))) / 1_000;
  tell(`${counted(view.counts.total, 'row')} in ${duration(seconds)}:`);
  tell(`${pad(view.counts.created)} created on the platform`);
  const linked = await rowsOf(stage, view.id, 'linked');
  tell(`${pad(view.counts.linked)} found there and linked: ${linked.map((row) => row.externalId).join(', ')}`);
  await tellRest(stage, view);
  const { userManagement } = await stage.platform.stats();
  tell(
    `${pad(userManagement.arrivals)} calls; the largest sliding minute held ${userManagement.largestWindow.all} of the ${CALLS_PER_MINUTE} allowed, ${userManagement.rateLimited} were refused`,
  );
}

/** The same files once more: what has not changed costs nothing. */
export async function secondImport(stage: Stage): Promise<void> {
  title('The same files once more.');
  const before = await stage.platform.stats();
  const view = await importOnce(stage);
  const after = await stage.platform.stats();
  const calls = after.userManagement.arrivals - before.userManagement.arrivals;
  tell(
    `${pad(view.counts.unchanged)} of ${view.counts.total} rows unchanged, ${counted(calls, 'call')} to the platform`,
  );
}

async function importOnce({ ehr, signal }: Stage): Promise<ImportResponse> {
  const { form } = await formOf(FILES);
  const { id } = await ehr.post<ImportResponse>('/v1/imports', form, { signal });
  return watchImport(ehr, id, new LiveLine(process.stdout), { signal });
}

async function tellRest(stage: Stage, view: ImportResponse): Promise<void> {
  const review = await rowsOf(stage, view.id, 'needsReview');
  tell(`${pad(review.length)} left for review:`);
  for (const { externalId } of review) {
    const person = await stage.ehr.get<PersonResponse>(`/v1/clients/${externalId}`);
    const { message, platformMessage } = person.sync.error ?? {};
    tell(`       ${externalId}  ${[message, platformMessage].filter(Boolean).join(' ')}`);
  }
  const rejected = await rowsOf(stage, view.id, 'rejected');
  tell(`${pad(rejected.length)} rejected:`);
  for (const row of rejected) tell(`       ${row.externalId}  (${row.file}, line ${row.line}) ${row.hint}`);
}

async function rowsOf({ ehr }: Stage, id: string, outcome: string): Promise<ImportRowView[]> {
  return (await ehr.get<{ items: ImportRowView[] }>(withQuery(`/v1/imports/${id}/rows`, { outcome }))).items;
}

function pad(count: number): string {
  return String(count).padStart(4);
}
