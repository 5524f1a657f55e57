import type pg from 'pg';
import { withClient } from './database.js';

/** Any fixed number: concurrent GRANTs on one object fail, so processes that start together go one after the other. */
const GRANTS_LOCK = 727_004;

/** What the service does with each schema's objects. Nobody but the owner touches the migrations' history. */
const grantsTo = (role: string): string => `
  GRANT USAGE ON SCHEMA public TO ${role};
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role};
  GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO ${role};
  REVOKE UPDATE, DELETE ON audit_entries FROM ${role};
  REVOKE INSERT, UPDATE, DELETE ON _prisma_migrations FROM ${role};`;
const queueGrantsTo = (role: string): string => `
  GRANT USAGE ON SCHEMA bullmq TO ${role};
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA bullmq TO ${role};
  GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA bullmq TO ${role};
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA bullmq TO ${role};`;

/** Every table that the role may not do its work on. */
const LACKING = `
  SELECT format('%I.%I', n.nspname, c.relname) AS name
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname IN ('public', 'bullmq') AND c.relkind = 'r' AND c.relname <> '_prisma_migrations'
    AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
      AND has_table_privilege(c.oid, 'INSERT')
      AND (c.relname = 'audit_entries' OR has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')))
  LIMIT 1`;

/**
 * Lets a role that owns nothing run the service: read and write every table, but only add to the audit trail. Nothing
 * happens when the role is the owner's own. To be called after all migrations.
 *
 * @param ownerUrl of the role that owns the tables
 * @param url of the runtime role
 */
export async function grantRuntimeRights(ownerUrl: string, url: string): Promise<void> {
  const { rows: roles } = await withClient(url, (client) =>
    client.query<{ role: string }>('SELECT current_user AS role'),
  );
  const role = roles[0]?.role ?? '';
  await withClient(ownerUrl, async (client) => {
    const { rows } = await client.query<{ isOwner: boolean; hasQueues: boolean }>(
      `SELECT current_user = $1 AS "isOwner", to_regnamespace('bullmq') IS NOT NULL AS "hasQueues"`,
      [role],
    );
    if (rows[0]?.isOwner) return;
    const name = client.escapeIdentifier(role);
    const queues = rows[0]?.hasQueues ? queueGrantsTo(name) : '';
    await client.query(`BEGIN; SELECT pg_advisory_xact_lock(${GRANTS_LOCK}); ${grantsTo(name)} ${queues} COMMIT`);
  });
}

/** @throws {Error} naming the setting, when the role of DATABASE_URL may not read and write a table */
export async function checkRuntimeRights(url: string): Promise<void> {
  const { rows } = await withClient(url, (client) => client.query<{ name: string }>(LACKING));
  if (!rows[0]) return;
  throw new Error(
    `The role of DATABASE_URL lacks rights on ${rows[0].name}: let DATABASE_OWNER_URL name the role that owns the ` +
      'tables and the schema, which grants them at start.',
  );
}

const LOSSY_COMMITS =
  'PostgreSQL runs with synchronous_commit off for this role or database; set it to on, otherwise a crash takes back ' +
  'acknowledged webhooks, and people are made twice.';

/**
 * Says whether a commit may be lost once it has returned: the mark of a create and a webhook's 204 stand on it.
 *
 * @returns undefined when it may not
 */
export async function commitFault(client: Pick<pg.Client, 'query'>): Promise<string | undefined> {
  const { rows } = await client.query<{ mode: string }>(`SELECT current_setting('synchronous_commit') AS mode`);
  return rows[0]?.mode === 'off' ? LOSSY_COMMITS : undefined;
}
