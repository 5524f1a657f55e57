/** Details of a failure from adapter-pg. Prisma passes them on in `meta`, or bare when a COMMIT failed. */
interface DriverFault {
  kind?: string;
  originalCode?: string;
}

/** adapter-pg's kinds of socket errors, which have no code, with Prisma's codes for the same. */
const SOCKET_KINDS = new Map([
  ['DatabaseNotReachable', 'P1001'],
  ['SocketTimeout', 'P1008'],
  ['ConnectionClosed', 'P1017'],
  ['TlsConnectionError', 'P1011'],
]);

/** The code of an error of a library, or an empty text; of one that Prisma wrapped, the database's or the socket's. */
export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const { name, cause, meta } = error as Error & { meta?: { driverAdapterError?: { cause?: DriverFault } } };
  const wrapped = name === 'DriverAdapterError' ? (cause as DriverFault) : meta?.driverAdapterError?.cause;
  if (wrapped) return wrapped.originalCode ?? SOCKET_KINDS.get(wrapped.kind ?? '') ?? '';
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** True if a statement met a row with the same unique key, which another process may have added at the same time. */
export const isUniqueViolation = (error: unknown): boolean => codeOf(error) === '23505';
