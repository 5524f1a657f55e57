import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import pg from 'pg';
import { withClient } from './database.js';

/** Any fixed number: concurrent GRANTs on one object fail, so processes that start together go one after the other. */
const GRANTS_LOCK = 727_004;

/** What the service may do with its tables. */
const USUAL = 'SELECT, INSERT, UPDATE, DELETE';

/** The tables of the audit trail with which it may do less, so that whoever takes it over can't change what it did. */
const OF_THE_TRAIL: Record<string, string> = {
  audit_entries: 'SELECT, INSERT',
  audit_subjects: 'SELECT, INSERT',
  audit_seals: 'SELECT, INSERT',
  audit_unsealed: 'SELECT, INSERT, DELETE',
};

/** Nobody but the owner writes the migrations' history. */
const RESTRICTED: Record<string, string> = { ...OF_THE_TRAIL, _prisma_migrations: 'SELECT' };

/** Tables whose statistics the imports renew, which PostgreSQL below 17 lets their owner alone do: there it is left out. */
const ANALYSED = 'import_rows, import_references, people, client_providers';

const grantsTo = (role: string, restricted: readonly string[]): string => `
  GRANT USAGE ON SCHEMA public TO ${role};
  GRANT ${USUAL} ON ALL TABLES IN SCHEMA public TO ${role};
  GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO ${role};
  ${restricted.map((table) => `REVOKE ALL ON ${table} FROM ${role}; GRANT ${RESTRICTED[table]} ON ${table} TO ${role};`).join(' ')}`;
/** What runs with the owner's rights is for the service alone: every role of the server may call a function otherwise. */
const pruningTo = (role: string): string => `
  REVOKE ALL ON FUNCTION prune_audit(timestamptz) FROM PUBLIC;
  GRANT EXECUTE ON FUNCTION prune_audit(timestamptz) TO ${role};`;
const queueGrantsTo = (role: string): string => `
  GRANT USAGE ON SCHEMA bullmq TO ${role};
  GRANT ${USUAL} ON ALL TABLES IN SCHEMA bullmq TO ${role};
  GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA bullmq TO ${role};
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA bullmq TO ${role};`;

/** Every table that the role may not do its work on. */
const LACKING = `
  SELECT format('%I.%I', n.nspname, c.relname) AS name
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
    unnest(string_to_array(coalesce($1::jsonb ->> c.relname::text, $2), ', ')) AS needed
  WHERE n.nspname IN ('public', 'bullmq') AND c.relkind = 'r'
    AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, needed))
  LIMIT 1`;

/**
 * Makes the role of an address, with its password, unless there is one of that name.
 *
 * @param ownerUrl of a role that may make roles
 * @throws {Error} when it may not
 */
export async function makeRuntimeRole(ownerUrl: string, url: string): Promise<void> {
  const { user = '', password } = new pg.Client({ connectionString: url });
  await withClient(ownerUrl, async (client) => {
    const { rowCount } = await client.query('SELECT FROM pg_roles WHERE rolname = $1', [user]);
    if (rowCount !== 0) return;
    const secret = client.escapeLiteral(scramVerifier(String(password)));
    await client.query(`CREATE ROLE ${client.escapeIdentifier(user)} LOGIN PASSWORD ${secret}`).catch((error) => {
      if (error.code === '42501') throw new Error(MAKE_IT_YOURSELF);
      if (error.code !== '42710' && error.code !== '23505') throw error; // another process made it meanwhile
    });
  });
}

const MAKE_IT_YOURSELF =
  'There is no role as DATABASE_URL names it, and that of DATABASE_OWNER_URL may not make roles: make it ' +
  '(CREATE ROLE … LOGIN PASSWORD …), then start again.';

/** What PostgreSQL keeps of a password (RFC 5803): sent in its place, it stands in no log of statements. */
function scramVerifier(password: string): string {
  const [salt, rounds] = [randomBytes(16), 4_096];
  const salted = pbkdf2Sync(password.normalize('NFKC'), salt, rounds, 32, 'sha256');
  const keyed = (label: string) => createHmac('sha256', salted).update(label).digest();
  const stored = createHash('sha256').update(keyed('Client Key')).digest('base64');
  return `SCRAM-SHA-256$${rounds}:${salt.toString('base64')}$${stored}:${keyed('Server Key').toString('base64')}`;
}

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
    const { rows } = await client.query<{ isOwner: boolean; hasQueues: boolean; maintains: boolean; tables: string[] }>(
      `SELECT current_user = $1 AS "isOwner", to_regnamespace('bullmq') IS NOT NULL AS "hasQueues",
         current_setting('server_version_num')::int >= 170000 AS maintains,
         ARRAY(SELECT name FROM unnest($2::text[]) AS name WHERE to_regclass(name) IS NOT NULL) AS tables`,
      [role, Object.keys(RESTRICTED)],
    );
    const [found] = rows;
    if (!found || found.isOwner) return;
    const name = client.escapeIdentifier(role);
    const queues = found.hasQueues ? queueGrantsTo(name) : '';
    const maintenance = found.maintains ? `GRANT MAINTAIN ON ${ANALYSED} TO ${name};` : '';
    await client.query(
      `BEGIN; SELECT pg_advisory_xact_lock(${GRANTS_LOCK});
       ${grantsTo(name, found.tables)} ${pruningTo(name)} ${maintenance} ${queues} COMMIT`,
    );
  });
}

/** Whether a role may migrate: it owns the tables that there are, if any. */
export async function mayMigrate(url: string): Promise<boolean> {
  const { rows } = await withClient(url, (client) =>
    client.query<{ isOwner: boolean }>(
      `SELECT pg_has_role(relowner, 'MEMBER') AS "isOwner" FROM pg_class WHERE oid = to_regclass('_prisma_migrations')`,
    ),
  );
  return rows[0]?.isOwner ?? true;
}

/** @throws {Error} naming the setting, when the role of DATABASE_URL may not read and write a table */
export async function checkRuntimeRights(url: string): Promise<void> {
  const { rows } = await withClient(url, (client) =>
    client.query<{ name: string }>(LACKING, [JSON.stringify(RESTRICTED), USUAL]),
  );
  if (!rows[0]) return;
  throw new Error(
    `The role of DATABASE_URL lacks rights on ${rows[0].name}: run migrate, with DATABASE_OWNER_URL naming the role ` +
      'that owns the tables and the schema; it grants them.',
  );
}

export const OWNER_ALONE =
  'DATABASE_OWNER_URL is set and DATABASE_URL is not: set both, or neither for the embedded PostgreSQL.';

/** What an operator should know of a service that can rewrite what it did. */
export const OPEN_TRAIL =
  'The audit trail is not protected from the service itself: the role of DATABASE_URL owns it or may change it; let ' +
  'DATABASE_URL name a role of its own, and DATABASE_OWNER_URL, for migrate alone, the owner.';

/** Whether the role of a connection may change or remove what stands in the audit trail. */
export async function mayChangeTrail(client: Pick<pg.Client | pg.Pool, 'query'>): Promise<boolean> {
  const { rows } = await client.query<{ may: boolean }>(
    `SELECT coalesce(bool_or(pg_has_role(c.relowner, 'MEMBER') OR has_table_privilege(c.oid, 'UPDATE, TRUNCATE')
       OR name <> 'audit_unsealed' AND has_table_privilege(c.oid, 'DELETE')), false) AS may
     FROM unnest($1::text[]) AS name JOIN pg_class c ON c.oid = to_regclass(name)`,
    [Object.keys(OF_THE_TRAIL)],
  );
  return rows[0]?.may ?? false;
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
