/**
 * SQLSTATEs that say "not now": connection exceptions, shutdown, a statement or an idle transaction over its time, no
 * room for a connection or a row, a standby; and, of a database that was fit at the start, a login or a name that it
 * takes no longer.
 */
const SQLSTATE = /^(08...|57014|25P03|57P0[1-4]|53[1-4]00|25006|28000|28P01|3D000)$/;

/** SQLSTATEs of values that no column takes: NUL and other bytes, times and numbers that there are none of. */
const REFUSED_VALUE = /^(22003|22007|22008|22021|22P02|22P05)$/;

/** Socket faults as Node names them. */
const SOCKET = /^(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/;

/** Prisma: unreachable, timed out, closed, pool exhausted. */
const PRISMA = /^(P1001|P1002|P1008|P1017|P2024|P2037)$/;

/** pg and pg-pool raise these without a code. */
const MESSAGES = [
  'Connection terminated',
  'timeout exceeded when trying to connect',
  'Client has encountered a connection error',
  'Cannot use a pool after calling end',
  'Query read timeout',
];

/**
 * Answers whether an error means that the database can't be reached or can't write right now, so that the same request
 * may succeed later. Errors of HTTP clients are never taken for one.
 */
export function isDatabaseUnavailable(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || 'isAxiosError' in error || depth > 3) return false;
  const code = codeOf(error);
  if (SQLSTATE.test(code) || SOCKET.test(code) || PRISMA.test(code)) return true;
  if (error.name === 'PrismaClientInitializationError') return true;
  if (MESSAGES.some((message) => error.message.startsWith(message))) return true;
  return isDatabaseUnavailable(error.cause, depth + 1);
}

/** Answers whether the database refused a value that it was given, such as a text with a NUL in it. */
export function isRefusedValue(error: unknown): boolean {
  return error instanceof Error && REFUSED_VALUE.test(codeOf(error));
}

/** What adapter-pg knows of a failure: Prisma hands it on in `meta`, or bare when a COMMIT failed. */
interface DriverFault {
  kind?: string;
  originalCode?: string;
}

/** The kinds of adapter-pg for sockets, which bear no code of their own, as Prisma's codes for the same. */
const SOCKET_KINDS = new Map([
  ['DatabaseNotReachable', 'P1001'],
  ['SocketTimeout', 'P1008'],
  ['ConnectionClosed', 'P1017'],
]);

/** The code of an error of a library, or an empty text; of one that Prisma wrapped, the database's or the socket's. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const wrapped = driverFaultOf(error);
  if (wrapped) return wrapped.originalCode ?? SOCKET_KINDS.get(wrapped.kind ?? '') ?? '';
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

function driverFaultOf(error: Error): DriverFault | undefined {
  if (error.name === 'DriverAdapterError') return error.cause as DriverFault;
  return (error as { meta?: { driverAdapterError?: { cause?: DriverFault } } }).meta?.driverAdapterError?.cause;
}
