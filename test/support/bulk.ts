import { setTimeout as delay } from 'node:timers/promises';
import type { ImportFile, Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import type { Page } from '../../src/http/request/page.js';
import type { ImportResponse } from '../../src/imports/report/import-view.js';
import type { ImportRowView } from '../../src/imports/report/imports.dto.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import { ADMIN_KEY } from './app.js';

/** A provider of the tests: an email of its own unless told. */
export const providerLine = (id: string, email = `${id}@example.org`) => `${id},${email},Pia,${id}`;

/** A client of the tests; without an email unless told. */
export const clientLine = (id: string, providers: string[], email = '') =>
  `${id},${email},Cleo,${id},${providers.join('|')}`;

/** A file of providers. */
export function providersCsv(lines: string[]): ImportFile {
  return csv('providers.csv', ['externalId,email,firstName,lastName', ...lines]);
}

/** A file of clients. */
export function clientsCsv(lines: string[]): ImportFile {
  return csv('clients.csv', ['externalId,email,firstName,lastName,providers', ...lines]);
}

/** SQL that makes an import which wants nothing done, for people who are to be held back by one. */
export const NEW_IMPORT = `INSERT INTO imports (id, kind, mode, dry_run, state, created_by, finished_at)
  VALUES (gen_random_uuid(), 'clients', 'upsert', false, 'completed', 'admin', now()) RETURNING id`;

function csv(name: string, lines: string[]): ImportFile {
  return { name, type: 'text/csv', content: lines.join('\n') };
}

/** `many(3, 'p')` is p-1, p-2, p-3. */
export const many = (count: number, prefix: string) => Array.from({ length: count }, (_, n) => `${prefix}-${n + 1}`);

/** Every item behind a list. */
async function all<Item>(service: Service, path: string): Promise<Item[]> {
  const items: Item[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const join = path.includes('?') ? '&' : '?';
    const query: string = `${join}limit=200${cursor && `&cursor=${encodeURIComponent(cursor)}`}`;
    const { body }: { body: Page<Item> } = await service.call<Page<Item>>('GET', `${path}${query}`);
    items.push(...body.items);
    cursor = body.nextCursor;
  }
  return items;
}

/** Every row of an import. @param query such as `outcome=rejected` */
export function rowsOf(service: Service, id: string, query = ''): Promise<ImportRowView[]> {
  return all<ImportRowView>(service, `/v1/imports/${id}/rows${query && `?${query}`}`);
}

/** The file of an import's rejected rows; asked for again while the database has no time. */
export async function rejectedCsv(service: Service, id: string): Promise<string> {
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const response = await fetch(`${service.url}/v1/imports/${id}/rejected.csv`, { headers });
  const text = await response.text();
  if (response.status === 200) return text;
  if (response.status !== 503) throw new Error(`the rejected rows were answered ${response.status}: ${text}`);
  await delay(500);
  return rejectedCsv(service, id);
}

/** Every person who is not deleted. */
export async function everybody(service: Service): Promise<PersonResponse[]> {
  return [
    ...(await all<PersonResponse>(service, '/v1/providers')),
    ...(await all<PersonResponse>(service, '/v1/clients')),
  ];
}

/** An import as it stands. */
export async function importOf(service: Service, id: string): Promise<ImportResponse> {
  return (await service.call<ImportResponse>('GET', `/v1/imports/${id}`)).body;
}

/** Waits until an import is in a state. */
export async function importIs(service: Service, id: string, state: ImportResponse['state']): Promise<ImportResponse> {
  const look = async () => {
    const view = await importOf(service, id);
    return view.state === state ? view : undefined;
  };
  return until(`the import is ${state}`, look).catch((error) => {
    const trouble = service
      .output()
      .split('\n')
      .filter((line) => /"level":"(warn|error)"/.test(line));
    throw new Error(`${(error as Error).message}\n${trouble.slice(-3).join('\n')}`);
  });
}

/** Sends files as one import and waits for its end. */
export async function imported(service: Service, query: string, files: ImportFile[]): Promise<ImportResponse> {
  const { id } = await service.startImport(query, files);
  return importIs(service, id, 'completed');
}

/** Sends a dry run or a snapshot and waits for its plan. */
export async function planned(service: Service, query: string, files: ImportFile[]): Promise<ImportResponse> {
  const { id } = await service.startImport(query, files);
  return importIs(service, id, 'planned');
}

/** Which outcomes a planned outcome may have. */
export const OUTCOMES_OF_PLAN: Record<string, string[]> = {
  'create-or-link': ['created', 'linked'],
  'provider-change': ['updated'],
  'attribute-change': ['updated'],
  delete: ['deleted'],
  unchanged: ['unchanged'],
  'needs-review': ['needsReview'],
  rejected: ['rejected'],
};

/** The rows whose outcome is not the planned one. */
export function surprises(rows: ImportRowView[]): ImportRowView[] {
  return rows.filter(({ planned: plan, outcome }) => !OUTCOMES_OF_PLAN[plan ?? '']?.includes(outcome));
}
