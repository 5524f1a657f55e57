import { tlsFault } from '../config/tls-fault.js';
import { codeOf } from '../http/problem/fault.js';

/** Socket faults as Node names them, and SQLSTATEs of a server that refuses connections now. */
const AWAY = /^(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|08...|57P0[1-4]|53300)$/;

/** What each SQLSTATE means for the operator who sets the address. */
const BY_CODE: Record<string, (setting: string) => string> = {
  '28P01': (setting) => `PostgreSQL refuses the user or the password of ${setting} (28P01): correct it.`,
  '28000': (setting) => `PostgreSQL refuses the user of ${setting} (28000): correct it, or allow it in pg_hba.conf.`,
  '3D000': (setting) => `The database that ${setting} names does not exist (3D000): create it or correct the name.`,
  '42501': (setting) =>
    `The role of ${setting} may not change the schema (42501): name the role that owns the tables in DATABASE_OWNER_URL.`,
};

/** Why PostgreSQL can't be used, and which setting to mend; undefined when the error is about something else. */
export function connectFault(error: unknown, setting: string): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = codeOf(error);
  const about = BY_CODE[code];
  if (about) return about(setting);
  const authority = `as &sslrootcert=/path/ca.pem in ${setting}`;
  const tls = tlsFault(error, { setting, authority });
  if (tls) return `PostgreSQL can not be reached over TLS, for ${tls}`;
  const silent = /^(timeout expired$|timeout exceeded|Connection terminated)/.test(error.message);
  if (!silent && !AWAY.test(code)) return undefined;
  return `PostgreSQL can not be reached (${code || 'no answer'}): check ${setting}, and that the server runs and takes connections from here.`;
}

/**
 * Runs what needs the database at start.
 *
 * @param setting the name of the setting that holds the address
 * @throws {Error} saying in one sentence why PostgreSQL can't be used; what is about something else as it was
 */
export async function explained<T>(setting: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const sentence = connectFault(error, setting);
    throw sentence ? new Error(sentence, { cause: error }) : error;
  }
}
