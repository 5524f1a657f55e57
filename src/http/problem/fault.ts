import { HttpException } from '@nestjs/common';
import { isDatabaseUnavailable, isRefusedValue } from '../../errors/database-fault.js';
import { codeOf } from '../../errors/error-code.js';
import { Problem } from './problem.js';

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
  if (isRefusedValue(error)) {
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
