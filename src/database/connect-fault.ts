import { tlsFault } from '../config/tls-fault.js';
import { codeOf } from '../http/problem/fault.js';

/** Codes of Node's socket errors, and SQLSTATEs of a server that rejects connections for now. */
const UNAVAILABLE =
  /^(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|08...|57P0[1-4]|53300)$/;

/** The remedy for each SQLSTATE. */
const BY_CODE: Record<string, (setting: string) => string> = {
  '28P01': (setting) => `PostgreSQL rejects the user or the password in ${setting} (28P01). Correct it.`,
  '28000': (setting) => `PostgreSQL rejects the user in ${setting} (28000). Correct it, or allow it in pg_hba.conf.`,
  '3D000': (setting) => `The database in ${setting} does not exist (3D000). Create it, or correct the name.`,
  '42501': (setting) =>
    `The role in ${setting} may not change the schema (42501). Set DATABASE_OWNER_URL to the role that owns the tables.`,
};

/** Explains why PostgreSQL cannot be used; undefined if the error has another cause. */
export function connectFault(error: unknown, setting: string): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = codeOf(error);
  const about = BY_CODE[code];
  if (about) return about(setting);
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
export async function explained<T>(setting: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const sentence = connectFault(error, setting);
    throw sentence ? new Error(sentence, { cause: error }) : error;
  }
}
