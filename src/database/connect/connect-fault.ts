import { codeOf } from '../../errors/error-code.js';
import { tlsFault } from '../../errors/tls-fault.js';

/** Codes of Node's socket errors, and SQLSTATEs of a server that rejects connections for now. */
const UNAVAILABLE =
  /^(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|08...|57P0[1-4])$/;

export const SCHEMA_REMEDY =
  'Create one for it (CREATE SCHEMA notebridge AUTHORIZATION …; ALTER ROLE … SET search_path = notebridge), or run migrate ' +
  'with DATABASE_OWNER_URL naming a role that may.';

/** The remedy for each SQLSTATE. */
const BY_CODE: Record<string, (setting: string, message: string) => string> = {
  '28P01': (setting) => `PostgreSQL rejects the user or the password in ${setting} (28P01). Correct it.`,
  '28000': (setting) => `PostgreSQL rejects the user in ${setting} (28000). Correct it, or allow it in pg_hba.conf.`,
  '3D000': (setting) => `The database in ${setting} does not exist (3D000). Create it, or correct the name.`,
  '42501': (setting) =>
    `The role in ${setting} may not change the schema (42501). Set DATABASE_OWNER_URL to the role that owns the tables.`,
  '53300': (setting, message) =>
    `PostgreSQL has no free connection for ${setting}, because of ${limitOf(message)} (53300). Lower DATABASE_CONNECTIONS, run fewer processes, or raise the limit.`,
  '25006': (setting) => `PostgreSQL accepts no writes from ${setting} (25006). Name the primary.`,
  '53100': (setting) => `The disk of PostgreSQL in ${setting} is full (53100). Give it more room.`,
};

/** The limit that a message of PostgreSQL is about, as far as it is in English. */
function limitOf(message: string): string {
  if (/for role/.test(message)) return "the role's CONNECTION LIMIT";
  if (/for database/.test(message)) return "the database's CONNECTION LIMIT";
  return 'max_connections or the CONNECTION LIMIT of role or database';
}

/** Explains why PostgreSQL cannot be used; undefined if the error has another cause. */
export function connectFault(error: unknown, setting: string): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = codeOf(error);
  const about = BY_CODE[code];
  if (about) return about(setting, error.message);
  const authority = `as &sslrootcert=/path/ca.pem in ${setting}`;
  const tls = tlsFault(error, { setting, authority });
  if (tls) return `PostgreSQL cannot be reached over TLS, because ${tls}`;
  const silent = /^(timeout expired$|timeout exceeded|Connection terminated)/.test(error.message);
  if (!silent && !UNAVAILABLE.test(code)) return undefined;
  return `PostgreSQL cannot be reached (${code || 'no answer'}). Check ${setting}, and that the server runs and accepts connections from here.`;
}

/**
 * Runs work that needs the database at start.
 *
 * @param setting the setting with the URL
 * @throws {Error} that explains why PostgreSQL cannot be used; other errors unchanged
 */
export async function withConnectHint<T>(setting: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const sentence = connectFault(error, setting);
    throw sentence ? new Error(sentence, { cause: error }) : error;
  }
}
