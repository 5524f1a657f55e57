import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Schemas } from '../client/methods.js';
import { formOf } from '../src/cli/import/import-files.js';
import { type ImportProgress, importProgress } from '../src/cli/import/import-watch.js';
import { counted, duration } from '../src/cli/output/print.js';
import { LiveLine } from '../src/cli/output/progress.js';
import { CALLS_PER_MINUTE, ROOT } from './settings.js';
import { type Stage, tell, title } from './stage.js';

type ImportRow = Schemas['ImportRowView'];

/** An import with its outcomes, which the API's description does not name. */
type Import = Schemas['ImportResponse'] & Pick<ImportProgress, 'counts'>;

const POLL_MS = 300;

const FILES = ['providers.csv', 'clients.csv'].map((name) => path.join(ROOT, 'demo/data', name));

/** Providers with an account on the platform before the EHR is connected. */
const KNOWN_PROVIDERS = ['P-103', 'P-108'];

/** Two providers already exist on the platform, as in real life: they must be found, not duplicated. */
export async function platformBefore({ platform }: Stage): Promise<void> {
  title(`The platform already knows two of the EHR's providers: ${KNOWN_PROVIDERS.join(' and ')}.`);
  const lines = readFileSync(FILES[0] ?? '', 'utf8').split('\n');
  for (const line of lines) {
    const [externalId = '', email, firstName, lastName] = line.trim().split(',');
    if (!KNOWN_PROVIDERS.includes(externalId)) continue;
    await platform.addUser({ role: 'HealthcareProvider', email, firstName, lastName });
  }
}

/** Imports the EHR's export. */
export async function firstImport(stage: Stage): Promise<void> {
  title('The export of the EHR is imported: demo/data/providers.csv and demo/data/clients.csv.');
  const view = await importOnce(stage);
  const seconds = (Number(new Date(view.finishedAt ?? Number.NaN)) - Number(new Date(view.createdAt))) / 1_000;
  tell(`${counted(view.counts.total, 'row')} in ${duration(seconds)}:`);
  tell(`${pad(view.counts.created)} created on the platform`);
  const linked = await rowsOf(stage, view.id, 'linked');
  tell(
    `${pad(view.counts.linked)} found on the platform and linked: ${linked.map((row) => row.externalId).join(', ')}`,
  );
  await printReview(stage, view);
  const { userManagement } = await stage.platform.stats();
  tell(
    `${pad(userManagement.arrivals)} calls; at most ${userManagement.largestWindow.all} of ${CALLS_PER_MINUTE} allowed in any minute, ${userManagement.rateLimited} rejected`,
  );
}

/** Imports the same files again: unchanged rows need no calls. */
export async function secondImport(stage: Stage): Promise<void> {
  title('The same files again.');
  const before = await stage.platform.stats();
  const view = await importOnce(stage);
  const after = await stage.platform.stats();
  const calls = after.userManagement.arrivals - before.userManagement.arrivals;
  tell(
    `${pad(view.counts.unchanged)} of ${view.counts.total} rows unchanged, ${counted(calls, 'call')} to the platform`,
  );
}

async function importOnce({ ehr, signal }: Stage): Promise<Import> {
  const { form } = await formOf(FILES);
  const { id } = (await ehr.upload('/v1/imports', form, { signal })).data;
  const live = new LiveLine(process.stdout);
  try {
    // Without `Prefer: wait`, because every answer updates the progress.
    for (;;) {
      const view = (await ehr.GET('/v1/imports/{id}', { params: { path: { id } }, signal })).data as Import;
      if (view.state !== 'staging') live.show(importProgress(view));
      if (view.state !== 'staging' && view.state !== 'running') return view;
      await delay(POLL_MS, undefined, { signal });
    }
  } finally {
    live.end();
  }
}

async function printReview(stage: Stage, view: Import): Promise<void> {
  const review = await rowsOf(stage, view.id, 'needsReview');
  tell(`${pad(review.length)} need review:`);
  for (const { externalId } of review) {
    const params = { path: { externalId: externalId ?? '' } };
    const person = (await stage.ehr.GET('/v1/clients/{externalId}', { params })).data;
    const { message, platformMessage } = person.sync.error ?? {};
    tell(`       ${externalId}  ${[message, platformMessage].filter(Boolean).join(' ')}`);
  }
  const rejected = await rowsOf(stage, view.id, 'rejected');
  tell(`${pad(rejected.length)} rejected:`);
  for (const row of rejected) tell(`       ${row.externalId}  (${row.file}, line ${row.line}) ${row.hint}`);
}

async function rowsOf({ ehr }: Stage, id: string, outcome: ImportRow['outcome']): Promise<ImportRow[]> {
  return (await ehr.GET('/v1/imports/{id}/rows', { params: { path: { id }, query: { outcome } } })).data.items;
}

function pad(count: number): string {
  return String(count).padStart(4);
}
