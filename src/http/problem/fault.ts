import { HttpException } from '@nestjs/common';
import { Problem } from './problem.js';
import { isTlsFault } from './tls-fault.js';

/** `Retry-After` while the database is unavailable. */
const DATABASE_RETRY_SECONDS = 5;

const FASTIFY: Record<string, () => Problem> = {
  FST_ERR_CTP_BODY_TOO_LARGE: bodyTooLarge,
  FST_REQ_FILE_TOO_LARGE: bodyTooLarge,
  FST_PARTS_LIMIT: bodyTooLarge,
  FST_FILES_LIMIT: bodyTooLarge,
  FST_FIELDS_LIMIT: bodyTooLarge,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => unsupportedMediaType('application/json'),
  FST_INVALID_MULTIPART_CONTENT_TYPE: () => unsupportedMediaType('multipart/form-data'),
  FST_ERR_CTP_EMPTY_JSON_BODY: badJson,
  FST_ERR_CTP_INVALID_JSON_BODY: badJson,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () =>
    new Problem('bad-content-length', 'The body does not have the length of Content-Length. Send the request again.'),
  FST_MP_PREMATURE_CLOSE: badMultipart,
  FST_PROTO_VIOLATION: badMultipart,
  FST_INVALID_JSON_FIELD_ERROR: badMultipart,
  FST_ERR_BAD_URL: () => new Problem('bad-url', 'The URL is not well-formed. Percent-encode its path segments.'),
  FST_ERR_MAX_PARAM_LENGTH: () => new Problem('url-too-long', 'A path segment of the URL is too long.'),
};

/** busboy raises these without a code. */
const MULTIPART = /^(Multipart: |Unexpected end of multipart data|Malformed part header|Part terminated early)/;

/** Problems for errors of Nest, Fastify and their plugins whose codes are not listed above. */
const BY_STATUS: Record<number, Problem> = {
  400: new Problem('bad-request', 'The request is not well-formed.'),
  404: new Problem('not-found', 'No operation has this path. See /docs or /openapi.json.'),
  503: new Problem('unavailable', 'The service is unavailable. Send the request again.'),
};

/** The body is larger than the route accepts. */
export function bodyTooLarge(): Problem {
  return new Problem('body-too-large', 'The body exceeds the limit of this route. Send less at a time.');
}

/** The body is of a type that the route does not read. @param takes what it reads instead */
export function unsupportedMediaType(takes: string): Problem {
  return new Problem('unsupported-media-type', `This route takes ${takes}. Set Content-Type accordingly.`);
}

function badJson(): Problem {
  const detail =
    'The body is not valid JSON, or has a member __proto__ or constructor.prototype. Check it with a JSON parser.';
  return new Problem('bad-json', detail);
}

function badMultipart(): Problem {
  return new Problem('bad-multipart', 'The multipart body is broken or ends early. Send it again.');
}

/**
 * Turns anything that was thrown into a problem, or undefined when it is the service's own fault. Messages of foreign
 * errors are never passed on, because they may quote the request.
 */
export function problemOf(error: unknown): Problem | undefined {
  if (error instanceof Problem) return error;
  const cause = error instanceof HttpException ? (error.cause ?? error) : error;
  const known = FASTIFY[codeOf(cause)] ?? FASTIFY[codeOf(error)];
  if (known) return known();
  if (isDatabaseUnavailable(error)) {
    const detail = 'The database is unavailable or overloaded. Send the request again.';
    return new Problem('database-unavailable', detail, { retryAfterSeconds: DATABASE_RETRY_SECONDS });
  }
  if (REFUSED_VALUE.test(codeOf(error))) {
    const detail = 'A value cannot be stored. Send texts without NUL characters, and times and numbers in range.';
    return new Problem('bad-value', detail);
  }
  if (cause instanceof Error && MULTIPART.test(cause.message)) return badMultipart();
  const status = error instanceof HttpException ? error.getStatus() : statusCodeOf(error);
  return (
    BY_STATUS[status] ?? (status < 500 ? new Problem('refused', 'The request was rejected.', { status }) : undefined)
  );
}

/** The 4xx status of a library's error; 500 otherwise. */
function statusCodeOf(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  return status >= 400 && status < 500 ? status : 500;
}

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

/** SQLSTATEs of values that no column accepts, such as a text with a NUL, or a time or number that does not exist. */
const REFUSED_VALUE = /^(22003|22007|22008|22021|22P02|22P05)$/;

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
