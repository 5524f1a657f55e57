import type pg from 'pg';
import type { Env } from '../../config/env.js';
import { connectFault } from '../../database/connect/connect-fault.js';
import { withClient } from '../../database/connect/session.js';
import { missingMigrations } from '../../database/migrations.js';
import {
  checkRuntimeRights,
  mayChangeAuditLog,
  mayMigrate,
  UNPROTECTED_AUDIT_LOG,
} from '../../database/runtime-role.js';
import { withPrisma } from '../../database/with-prisma.js';
import { codeOf } from '../../errors/error-code.js';
import { creationFault, databaseFault, readDatabaseFacts } from '../../operations/start/database-faults.js';
import { keyFaults } from '../../vault/key-uses.js';
import { KEY_SETTINGS, parseAllKeys } from '../../vault/keys.js';
import { causeOf } from '../api/api.js';
import { type Finding, faultOf, faulty, ok, unknown } from './finding.js';

/** @param ownerUrl of the role that migrates */
export async function databaseFinding(url: string, ownerUrl?: string): Promise<Finding> {
  try {
    return await withClient(url, async (client) => {
      const facts = await readDatabaseFacts(client);
      const fault =
        databaseFault(facts, 'DATABASE_URL') ??
        (ownerUrl ? undefined : creationFault(facts, { setting: 'DATABASE_URL', needsQueues: false }));
      if (fault) return faulty(fault);
      const { rows } = await client.query<{ version: string }>(`SELECT current_setting('server_version') AS version`);
      const missing = await missingMigrations(client);
      if (!ownerUrl && !facts.mayMigrate) {
        if (missing.length > 0)
          return faulty(`${missing.length} migrations are missing, and ${NOT_THE_OWNER}`, MIGRATE);
        await checkRuntimeRights(url);
      }
      const advice = missing.length > 0 ? ['They are applied when the service starts, or by migrate.'] : [];
      if (await mayChangeAuditLog(client)) advice.push(UNPROTECTED_AUDIT_LOG);
      return ok(`PostgreSQL ${rows[0]?.version.split(' ')[0]}, ${missing.length} migrations to apply`, ...advice);
    });
  } catch (error) {
    const sentence = connectFault(error, 'DATABASE_URL');
    if (sentence) return faulty(sentence);
    if (codeOf(error) === '') return faultOf(error);
    const advice = 'Check DATABASE_URL, and that the server accepts connections from here.';
    return faulty(`PostgreSQL cannot be used (${causeOf(error)})`, advice);
  }
}

const NOT_THE_OWNER = 'the role of DATABASE_URL may not apply them';
const MIGRATE = 'Run npm start migrate with DATABASE_OWNER_URL set to the role that owns the tables.';

/** Checks the role that migrates. */
export async function ownerFinding(url: string): Promise<Finding> {
  try {
    if (!(await withClient(url, mayMigrate)))
      return faulty('the role of DATABASE_OWNER_URL does not own the tables', NAME_OWNER);
    return ok('the role of DATABASE_OWNER_URL may migrate', 'Set it only for migrate, not for a process that serves.');
  } catch (error) {
    return faulty(connectFault(error, 'DATABASE_OWNER_URL') ?? `PostgreSQL cannot be used (${causeOf(error)})`);
  }
}

const NAME_OWNER = 'Name the role that owns the tables: SELECT tableowner FROM pg_tables.';

/** Checks that all keys that stored data needs are set. */
export async function keysFinding(url: string, env: Env): Promise<Finding> {
  const keys = parseAllKeys(env);
  const faults = await withPrisma(url, (prisma) => keyFaults(prisma, keys)).catch(() => 'unread' as const);
  if (faults === 'unread') return unknown('not checked: the database cannot be read');
  const given = KEY_SETTINGS.map((name) => `${keys[name].length} in ${name}`).join(', ');
  if (!faults) return ok(`${given}; no stored data needs them yet`);
  return faults.length > 0 ? faulty(faults.join(' ')) : ok(`${given}; stored data needs no others`);
}

/** Checks whether ADMIN_API_KEY is still needed in addition to API keys. @param isOn false if it is off */
export async function accessFinding(url: string, isOn: boolean): Promise<Finding> {
  const made = await withClient(url, readKeyCounts).catch(() => undefined);
  if (!made) return unknown('not checked: the database cannot be read or has no tables yet');
  const { keys, admins } = made;
  const what = `${keys} API keys exist, ${admins} of them with the scope admin; ADMIN_API_KEY is`;
  if (!isOn && admins === 0) return faulty(`${what} off`, 'No key can create keys: set ADMIN_API_KEY again.');
  if (!isOn) return ok(`${what} off`);
  if (keys === 0) return ok(`${what} on`);
  const make = 'Create a key with the scope admin (npx notebridge keys create), then set ADMIN_API_KEY=off.';
  return unknown(`${what} still on`, admins === 0 ? make : 'Set ADMIN_API_KEY=off.');
}

async function readKeyCounts(client: pg.Client): Promise<{ keys: number; admins: number } | undefined> {
  const { rows } = await client.query<{ keys: number; admins: number }>(
    `SELECT count(*)::int AS keys, count(*) FILTER (WHERE 'admin' = ANY (scopes))::int AS admins FROM api_keys
     WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())`,
  );
  return rows[0];
}
