import { HttpException } from '@nestjs/common';
import { codeOf, isDatabaseUnavailable, isRefusedValue } from './database-fault.js';
import { Problem } from './problem.js';

/** Seconds a caller is asked to wait while the database is away. */
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
    new Problem(400, 'bad-content-length', 'The body is not as long as Content-Length says; send the request again.'),
  FST_MP_PREMATURE_CLOSE: badMultipart,
  FST_PROTO_VIOLATION: badMultipart,
  FST_INVALID_JSON_FIELD_ERROR: badMultipart,
  FST_ERR_BAD_URL: () => new Problem(400, 'bad-url', 'The URL is not well-formed; percent-encode its path segments.'),
  FST_ERR_MAX_PARAM_LENGTH: () => new Problem(414, 'url-too-long', 'A path segment of the URL is too long.'),
};

/** busboy raises these without a code. */
const MULTIPART = /^(Multipart: |Unexpected end of multipart data|Malformed part header|Part terminated early)/;

const BY_STATUS: Record<number, [type: string, detail: string]> = {
  400: ['bad-request', 'The request is not well-formed.'],
  401: ['unauthenticated', 'Send a valid key as Authorization: Bearer <key>.'],
  403: ['forbidden', 'This key may not do that.'],
  404: ['not-found', 'Nothing is found under this path; /docs and /openapi.json list what there is.'],
  405: ['method-not-allowed', 'This path does not take that method; /openapi.json lists what there is.'],
  409: ['conflict', 'The request does not fit the present state.'],
  413: ['body-too-large', 'The body is larger than this route takes.'],
  415: ['unsupported-media-type', 'This route does not take that Content-Type.'],
  422: ['unprocessable', 'The request is understood but can not be carried out.'],
  429: ['too-many-requests', 'Too many requests; slow down.'],
  503: ['unavailable', 'The service can not answer now; send the request again.'],
};

/** The body is larger than the route takes. */
export function bodyTooLarge(): Problem {
  return new Problem(413, 'body-too-large', 'The body is larger than this route takes; send less at a time.');
}

/** The body is of a type that the route does not read. @param takes what it reads instead */
export function unsupportedMediaType(takes: string): Problem {
  return new Problem(415, 'unsupported-media-type', `This route takes ${takes}; set Content-Type accordingly.`);
}

function badValue(): Problem {
  const detail = 'A value can not be kept or looked for; send texts without NUL, and times and numbers that there are.';
  return new Problem(400, 'bad-value', detail);
}

function badJson(): Problem {
  return new Problem(
    400,
    'bad-json',
    'The body is not valid JSON, or has a member __proto__ or constructor.prototype; check it with a JSON parser.',
  );
}

function badMultipart(): Problem {
  return new Problem(400, 'bad-multipart', 'The multipart body is broken or ends early; send it again.');
}

/**
 * Turns anything that was thrown into a problem whose text is safe to send: messages of foreign errors are never
 * passed on, for they may quote the request.
 *
 * @returns undefined for an unexpected fault, which is the service's own
 */
export function problemOf(error: unknown): Problem | undefined {
  if (error instanceof Problem) return error;
  const cause = error instanceof HttpException ? (error.cause ?? error) : error;
  const known = FASTIFY[codeOf(cause)] ?? FASTIFY[codeOf(error)];
  if (known) return known();
  if (isDatabaseUnavailable(error)) {
    return new Problem(
      503,
      'database-unavailable',
      'The database can not be reached, or is too busy; send the request again.',
      {
        retryAfterSeconds: DATABASE_RETRY_SECONDS,
      },
    );
  }
  if (isRefusedValue(error)) return badValue();
  if (cause instanceof Error && MULTIPART.test(cause.message)) return badMultipart();
  if (error instanceof HttpException) return problemOfStatus(error.getStatus());
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  return status >= 400 && status < 500 ? problemOfStatus(status) : undefined;
}

function problemOfStatus(status: number): Problem | undefined {
  const [type, detail] = BY_STATUS[status] ?? (status < 500 ? ['refused', 'The request was refused.'] : []);
  return type && detail ? new Problem(status, type, detail) : undefined;
}
