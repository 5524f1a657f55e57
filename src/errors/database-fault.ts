import { codeOf } from './error-code.js';
import { isTlsFault } from './tls-fault.js';

/**
 * SQLSTATEs of connection exceptions, timeouts, shutdowns, lacking resources (disk, memory, connections) and standbys;
 * also of rejected logins and missing databases, because both were valid at the start. Then the codes of Node's socket
 * faults, and Prisma's.
 */
const UNAVAILABLE = [
  /^(08...|57014|25P03|57P0[1-4]|53[1-4]00|25006|28000|28P01|3D000)$/,
  /^(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/,
  /^(P1001|P1002|P1008|P1011|P1017|P2024|P2037)$/,
];

/** pg and pg-pool raise these without a code. */
const MESSAGES = [
  'Connection terminated',
  'timeout exceeded when trying to connect',
  'Client has encountered a connection error',
  'Client was closed',
  'Cannot use a pool after calling end',
  'Query read timeout',
];

/** True if the database can't be reached or can't write now, so that the same request may succeed later. */
export function isDatabaseUnavailable(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || 'isAxiosError' in error || depth > 3) return false;
  const code = codeOf(error);
  if (UNAVAILABLE.some((codes) => codes.test(code)) || error.name === 'PrismaClientInitializationError') return true;
  if (MESSAGES.some((message) => error.message.startsWith(message)) || isTlsFault(error)) return true;
  return isDatabaseUnavailable(error.cause, depth + 1);
}

/** True if one statement took too long, by the timeout of PostgreSQL or of the client. */
export const isStatementTimeout = (error: unknown): boolean =>
  codeOf(error) === '57014' || (error instanceof Error && error.message.startsWith('Query read timeout'));

/** True if the database lacks disk, memory or connections (class 53). */
export const isOutOfResources = (error: unknown): boolean => codeOf(error).startsWith('53');

/** SQLSTATEs of values that no column accepts, such as a text with a NUL, or a time or number that does not exist. */
const REFUSED_VALUE = /^(22003|22007|22008|22021|22P02|22P05)$/;

/** True if the database refused a value of the request, so that the same request will fail again. */
export const isRefusedValue = (error: unknown): boolean => REFUSED_VALUE.test(codeOf(error));
