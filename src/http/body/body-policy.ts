import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Env } from '../../config/env.js';
import { unsupportedMediaType } from '../problem/fault.js';
import { Problem } from '../problem/problem.js';
import type { EdgeOptions } from '../request/route-options.js';
import { shapeProblem } from './body-shape.js';

/**
 * Names under which Fastify is told to read a body raw. They stand in for the caller's Content-Type until the body is
 * read, so that neither a known type (JSON would be parsed) nor a malformed one (Fastify answers 415) gets in the way.
 */
const READ = { buffer: 'application/vnd.notebridge.bytes', stream: 'application/vnd.notebridge.stream' };

const WITHOUT_BODY = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller's Content-Type while another stands in for it. */
    declaredType: string | null | undefined;
  }
}

/** The media type of a Content-Type header in lower case, without parameters. */
export function mediaTypeOf(contentType: string | undefined): string {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

function isEmpty(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] === undefined && (length === undefined || length === '0');
}

/** Answers whether a request has a body that Fastify reads into memory before the handler runs. */
export function isReadIntoMemory({ method, is404, raw, routeOptions }: FastifyRequest): boolean {
  const { rawBody, multipart } = routeOptions.config.edge ?? {};
  if (WITHOUT_BODY.has(method) || is404 || rawBody === 'stream' || isEmpty(raw.headers)) return false;
  return !(multipart && mediaTypeOf(raw.headers['content-type']) === 'multipart/form-data');
}

/**
 * What to do with the body of a request: read it under another type, let Fastify see it as it is, or refuse it.
 *
 * @param headers of the request; they hold the caller's Content-Type
 * @param options of the route
 * @returns the type to read it under; null for none (there is no body); undefined for its own
 * @throws {Problem} 415 when the route takes no such body
 */
export function readUnder(headers: IncomingHttpHeaders, options: EdgeOptions = {}): string | null | undefined {
  if (options.rawBody === 'buffer') return READ.buffer;
  const type = mediaTypeOf(headers['content-type']);
  const isMultipart = type === 'multipart/form-data';
  if (options.rawBody === 'stream') return isMultipart ? undefined : READ.stream;
  if (isEmpty(headers)) return null;
  if (options.multipart && isMultipart) return undefined;
  if (type !== 'application/json') {
    throw unsupportedMediaType(options.multipart ? 'application/json or multipart/form-data' : 'application/json');
  }
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (encoding !== 'identity') {
    throw new Problem(
      415,
      'unsupported-encoding',
      'Compressed bodies are not taken; send it without Content-Encoding.',
    );
  }
  return undefined;
}

/** Makes every route take JSON only, but those that say otherwise (`route-options.ts`). Call it before routes exist. */
export function installBodyPolicy(fastify: FastifyInstance, env: Env): void {
  fastify.decorateRequest('declaredType', null);

  fastify.addHook('onRoute', (route) => {
    const limit = route.config?.edge?.bodyLimit;
    if (limit !== undefined) route.bodyLimit = typeof limit === 'function' ? limit(env) : limit;
  });

  fastify.addHook('preParsing', (request, _reply, payload, done) => {
    if (WITHOUT_BODY.has(request.method)) return done(null, payload);
    const headers = request.raw.headers;
    try {
      const type = request.is404 ? READ.stream : readUnder(headers, request.routeOptions.config.edge);
      if (type !== undefined) {
        request.declaredType = headers['content-type'];
        if (type === null) delete headers['content-type'];
        else headers['content-type'] = type;
      }
      done(null, payload);
    } catch (refusal) {
      done(refusal as Problem);
    }
  });

  fastify.addHook('preValidation', (request, _reply, done) => {
    if (request.declaredType !== null) {
      const headers = request.raw.headers;
      if (request.declaredType === undefined) delete headers['content-type'];
      else headers['content-type'] = request.declaredType;
    }
    const isJson = !Buffer.isBuffer(request.body) && request.body !== request.raw;
    done(shapeProblem(request.query) ?? (isJson ? shapeProblem(request.body) : undefined));
  });

  fastify.addContentTypeParser(READ.buffer, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  fastify.addContentTypeParser(READ.stream, (_request, payload, done) => done(null, payload));
}
