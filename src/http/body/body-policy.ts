import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyBodyParser, FastifyInstance, FastifyRequest } from 'fastify';
import { unsupportedMediaType } from '../problem/fault.js';
import { Problem } from '../problem/problem.js';
import { whenOver } from '../request/when-over.js';
import type { BodyMemory } from './body-memory.js';
import { charsetOf, decodeText, jsonShapeFault, mediaTypeOf } from './json-text.js';
import { shapeProblem } from './validation.js';

/**
 * Replaces the caller's Content-Type until the handler streams the body, so that neither a known type (JSON would
 * be parsed) nor a malformed one (Fastify answers 415) gets in the way.
 */
const STREAM = 'application/vnd.notebridge.stream';

const WITHOUT_BODY = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller's Content-Type while `STREAM` replaces it. */
    declaredType: string | null | undefined;
    /** Bytes of a JSON body. */
    bodyBytes?: number;
  }
}

/** Makes routes accept only JSON, unless `@RouteOptions` says otherwise, and limits the bodies that arrive. */
export function installBodyPolicy(fastify: FastifyInstance, bodies: BodyMemory): void {
  fastify.decorateRequest('declaredType', null);
  fastify.addContentTypeParser(STREAM, (_request, payload, done) => done(null, payload));
  fastify.addHook('onRoute', (route) => {
    route.bodyLimit = route.config?.edge?.bodyLimit ?? route.bodyLimit;
  });
  fastify.addHook('preParsing', (request, reply, payload, done) => {
    const refusal = prepareBody(request);
    if (refusal) return done(refusal);
    if (isReadIntoMemory(request)) {
      const body = bodies.watch(payload, (problem) => void reply.send(problem), true);
      whenOver(reply.raw, () => body.release());
    }
    done(null, payload);
  });
  fastify.addHook('preValidation', (request, _reply, done) => {
    if (request.declaredType !== null) request.raw.headers['content-type'] = request.declaredType;
    const isJson = !Buffer.isBuffer(request.body) && request.body !== request.raw;
    done(shapeProblem(request.query) ?? (isJson ? shapeProblem(request.body) : undefined));
  });
  fastify.addHook('onResponse', (request, _reply, done) => {
    bodies.cutUnread(request.raw);
    done();
  });
}

/**
 * Reads JSON bodies: strictly in UTF-8, because a replaced byte would change a name, and within bounds, because validation
 * recurses over levels. No request of this API has more than five.
 */
export function jsonBodyParser(fastify: FastifyInstance): FastifyBodyParser<Buffer> {
  const parse = fastify.getDefaultJsonParser('error', 'error') as FastifyBodyParser<string>;
  return (request, bytes, done) => {
    request.bodyBytes = bytes.length;
    const text = decodeText(bytes);
    if (text === undefined) return done(new Problem('bad-json', 'The body is not valid UTF-8. Encode it as UTF-8.'));
    const fault = jsonShapeFault(text);
    if (fault) return done(new Problem('too-deep', `The body is ${fault}. Flatten it.`));
    return parse(request, text, done);
  };
}

const isMultipart = (headers: IncomingHttpHeaders) => mediaTypeOf(headers['content-type']) === 'multipart/form-data';

function isEmpty(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] === undefined && (length === undefined || length === '0');
}

/** True if a request has a body that Fastify reads into memory before the handler runs. */
function isReadIntoMemory({ method, is404, raw, routeOptions }: FastifyRequest): boolean {
  const body = routeOptions.config.edge?.body;
  if (WITHOUT_BODY.has(method) || is404 || body === 'stream' || isEmpty(raw.headers)) return false;
  return !(body === 'multipart' && isMultipart(raw.headers));
}

/** Has Fastify pass on a stream, ignore the type of an empty body, and read JSON. @returns why the body is refused */
function prepareBody(request: FastifyRequest): Problem | undefined {
  const { headers } = request.raw;
  const body = request.routeOptions.config.edge?.body;
  if (body === 'raw' || WITHOUT_BODY.has(request.method)) return undefined;
  if (request.is404 || (body === 'stream' && !isMultipart(headers))) {
    request.declaredType = headers['content-type'];
    headers['content-type'] = STREAM;
    return undefined;
  }
  if (isEmpty(headers)) {
    delete headers['content-type'];
    return undefined;
  }
  if (body !== undefined && isMultipart(headers)) return undefined;
  const type = headers['content-type'];
  if (mediaTypeOf(type) !== 'application/json')
    return unsupportedMediaType(body === 'multipart' ? 'application/json or multipart/form-data' : 'application/json');
  if (!/^utf-?8$/.test(charsetOf(type))) return unsupportedMediaType('application/json in UTF-8');
  if ((headers['content-encoding'] ?? 'identity').trim().toLowerCase() === 'identity') return undefined;
  const detail = 'Compressed bodies are not accepted. Send the body without Content-Encoding.';
  return new Problem('unsupported-encoding', detail);
}
