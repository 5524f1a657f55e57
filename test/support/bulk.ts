import type { ImportFile } from '../../harness/service.js';
import type { ImportRowView } from '../../src/imports/api/imports.dto.js';

/** A CSV line of a provider, by default with a unique email. */
export const providerLine = (id: string, email = `${id}@example.org`) => `${id},${email},Pia,${id}`;

/** A CSV line of a client, by default without an email. */
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

/** SQL that inserts a completed import without rows. Its files cannot be decrypted. */
export const NEW_IMPORT = `INSERT INTO imports (id, kind, mode, dry_run, state, opened_at, finished_at, files)
  VALUES (gen_random_uuid(), 'clients', 'upsert', false, 'completed', now(), now(), '') RETURNING id`;

function csv(name: string, lines: string[]): ImportFile {
  return { name, type: 'text/csv', content: lines.join('\n') };
}

/** `many(3, 'p')` is p-1, p-2, p-3. */
export const many = (count: number, prefix: string) => Array.from({ length: count }, (_, n) => `${prefix}-${n + 1}`);

/** The possible outcomes of each planned outcome. */
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
