import { readFileSync } from 'node:fs';
import pg from 'pg';
import { projectPath } from '../config/version.js';
import { withClient } from './connect/session.js';

/** A table on which the current role lacks one of the privileges that the service needs. */
const TABLE_WITHOUT_RIGHTS = `
  SELECT format('%I.%I', n.nspname, c.relname) AS name
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
    unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS needed
  WHERE n.nspname IN (current_schema(), 'bullmq') AND c.relkind = 'r'
    AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, needed))
  LIMIT 1`;

/** The statements of prisma/roles.sql, which create the role `notebridge_service` with this password. */
export function serviceRoleSql(password: string): string {
  const file = readFileSync(projectPath('prisma/roles.sql'), 'utf8');
  return file.replace(/^ *\\.*$/gm, '').replace(":'password'", () => pg.escapeLiteral(password));
}

/** True if the current role owns the tables of the service, or is a superuser; undefined before the first migration. */
async function ownsTables(client: Pick<pg.Client | pg.Pool, 'query'>): Promise<boolean | undefined> {
  const { rows } = await client.query<{ owns: boolean }>(
    `SELECT pg_has_role(relowner, 'MEMBER') AS owns FROM pg_class WHERE oid = to_regclass('audit_entries')`,
  );
  return rows[0]?.owns;
}

/** True if the role of a connection may apply migrations to the tables. */
export const mayMigrate = async (client: pg.Client): Promise<boolean> => (await ownsTables(client)) ?? true;

/** True if the role of a connection may change or remove entries of the audit log, because it may drop its triggers. */
export const mayChangeAuditLog = async (client: Pick<pg.Client | pg.Pool, 'query'>): Promise<boolean> =>
  (await ownsTables(client)) ?? false;

/** @throws {Error} naming the setting, if the role of DATABASE_URL may not read and write a table */
export async function checkRuntimeRights(url: string): Promise<void> {
  const { rows } = await withClient(url, (client) => client.query<{ name: string }>(TABLE_WITHOUT_RIGHTS));
  if (!rows[0]) return;
  throw new Error(
    `The role of DATABASE_URL lacks rights on ${rows[0].name}: run prisma/roles.sql as the role of DATABASE_OWNER_URL.`,
  );
}

/** For the operator of a service that can change its own audit log. */
export const UNPROTECTED_AUDIT_LOG =
  'The audit log is not protected from the service itself, because the role of DATABASE_URL owns it. Create a role with ' +
  'prisma/roles.sql for DATABASE_URL, and name the owner in DATABASE_OWNER_URL, for migrate only.';
