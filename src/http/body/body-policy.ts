import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { unsupportedMediaType } from '../problem/fault.js';
import { Problem } from '../problem/problem.js';
import { shapeProblem } from './validation.js';

/**
 * Stands in for the caller's Content-Type until the handler streams the body, so that neither a known type (JSON would
 * be parsed) nor a malformed one (Fastify answers 415) gets in the way.
 */
const STREAM = 'application/vnd.notebridge.stream';

const WITHOUT_BODY = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller's Content-Type while `STREAM` stands in for it. */
    declaredType: string | null | undefined;
  }
}

/** The media type of a Content-Type header in lower case, without parameters. */
export function mediaTypeOf(contentType: string | undefined): string {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

const isMultipart = (headers: IncomingHttpHeaders) => mediaTypeOf(headers['content-type']) === 'multipart/form-data';

function isEmpty(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] === undefined && (length === undefined || length === '0');
}

/** Answers whether a request has a body that Fastify reads into memory before the handler runs. */
export function isReadIntoMemory({ method, is404, raw, routeOptions }: FastifyRequest): boolean {
  const body = routeOptions.config.edge?.body;
  if (WITHOUT_BODY.has(method) || is404 || body === 'stream' || isEmpty(raw.headers)) return false;
  return !(body === 'multipart' && isMultipart(raw.headers));
}

/** Has Fastify pass on the body of a stream, ignore the type of an empty one, and read JSON. @throws {Problem} 415 */
function prepareBody(request: FastifyRequest): void {
  const { headers } = request.raw;
  const body = request.routeOptions.config.edge?.body;
  if (request.is404 || (body === 'stream' && !isMultipart(headers))) {
    request.declaredType = headers['content-type'];
    headers['content-type'] = STREAM;
  } else if (isEmpty(headers)) {
    delete headers['content-type'];
  } else if (body === undefined || !isMultipart(headers)) {
    requireJson(headers, body === 'multipart' ? 'application/json or multipart/form-data' : 'application/json');
  }
}

function requireJson(headers: IncomingHttpHeaders, taken: string): void {
  if (mediaTypeOf(headers['content-type']) !== 'application/json') throw unsupportedMediaType(taken);
  if ((headers['content-encoding'] ?? 'identity').trim().toLowerCase() === 'identity') return;
  const detail = 'Compressed bodies are not taken; send it without Content-Encoding.';
  throw new Problem(415, 'unsupported-encoding', detail);
}

/** Makes every route take JSON only, but those that say otherwise (`@RouteOptions`). Call it before routes exist. */
export function installBodyPolicy(fastify: FastifyInstance): void {
  fastify.decorateRequest('declaredType', null);
  fastify.addContentTypeParser(STREAM, (_request, payload, done) => done(null, payload));

  fastify.addHook('onRoute', (route) => {
    route.bodyLimit = route.config?.edge?.bodyLimit ?? route.bodyLimit;
  });

  fastify.addHook('preParsing', (request, _reply, payload, done) => {
    try {
      const isRaw = request.routeOptions.config.edge?.body === 'raw';
      if (!isRaw && !WITHOUT_BODY.has(request.method)) prepareBody(request);
      done(null, payload);
    } catch (refusal) {
      done(refusal as Problem);
    }
  });

  fastify.addHook('preValidation', (request, _reply, done) => {
    if (request.declaredType !== null) {
      const { headers } = request.raw;
      if (request.declaredType === undefined) delete headers['content-type'];
      else headers['content-type'] = request.declaredType;
    }
    const isJson = !Buffer.isBuffer(request.body) && request.body !== request.raw;
    done(shapeProblem(request.query) ?? (isJson ? shapeProblem(request.body) : undefined));
  });
}
