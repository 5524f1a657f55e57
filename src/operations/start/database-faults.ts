import type pg from 'pg';
import { SCHEMA_REMEDY } from '../../database/connect/connect-fault.js';
import { mayMigrate } from '../../database/runtime-role.js';

/** Facts about a URL's role that the service checks before it creates a table. */
const FACTS = `
  SELECT current_schema() AS schema, current_setting('server_encoding') AS encoding,
    current_setting('transaction_read_only')::boolean AS "isReadOnly",
    current_setting('synchronous_commit') = 'off' AS "losesCommits",
    has_schema_privilege(current_schema(), 'CREATE') AS "mayCreate",
    to_regclass('_prisma_migrations') IS NOT NULL AS "hasTables",
    has_database_privilege(current_database(), 'CREATE') AS "mayCreateSchemas",
    to_regnamespace('bullmq') IS NOT NULL AS "hasQueues"`;

export interface DatabaseFacts {
  /** Null if the role may use no schema of its search path. */
  readonly schema: string | null;
  readonly encoding: string;
  readonly isReadOnly: boolean;
  /** Marks of creates and 204s to webhooks depend on commits that cannot be lost. */
  readonly losesCommits: boolean;
  readonly mayCreate: boolean;
  readonly hasTables: boolean;
  readonly mayCreateSchemas: boolean;
  readonly hasQueues: boolean;
  /** True if the role owns the tables, or may create them. */
  readonly mayMigrate: boolean;
}

export async function readDatabaseFacts(client: pg.Client): Promise<DatabaseFacts> {
  const { rows } = await client.query<Omit<DatabaseFacts, 'mayMigrate'>>(FACTS);
  const facts = rows[0] as Omit<DatabaseFacts, 'mayMigrate'>;
  return { ...facts, mayMigrate: facts.hasTables ? await mayMigrate(client) : facts.mayCreate };
}

/** Explains why the service cannot use a database; undefined if it can. @param setting the one with the URL */
export function databaseFault(facts: DatabaseFacts, setting: string): string | undefined {
  if (facts.encoding !== 'UTF8')
    return `The database in ${setting} has the encoding ${facts.encoding}, which cannot store every name. Create one with UTF8 (CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0).`;
  if (facts.isReadOnly)
    return `PostgreSQL accepts no writes from ${setting}, because the server is a standby, or the role or database is read-only. Name the primary, and set default_transaction_read_only to off.`;
  if (facts.losesCommits)
    return `PostgreSQL runs with synchronous_commit off for the role or database of ${setting}. Set it to on, otherwise a crash loses acknowledged webhooks, and people are created twice.`;
  if (facts.schema === null)
    return `The search_path of the role in ${setting} names no schema that it may use. ${SCHEMA_REMEDY}`;
  return undefined;
}

/** Explains why a role cannot create what is missing. @param needsQueues true if the queues run on PostgreSQL */
export function creationFault(
  { schema, mayCreate, hasTables, mayCreateSchemas, hasQueues }: DatabaseFacts,
  { setting, needsQueues }: { setting: string; needsQueues: boolean },
): string | undefined {
  if (!hasTables && !mayCreate)
    return `The role in ${setting} may not create tables in the schema ${schema}. ${SCHEMA_REMEDY}`;
  if (needsQueues && !hasQueues && !mayCreateSchemas)
    return `The role in ${setting} may not create the schema of the queues, bullmq. Grant it CREATE ON DATABASE until migrate has run, or set REDIS_URL.`;
  return undefined;
}
