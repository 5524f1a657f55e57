import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyBodyParser, FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '../../config/clock.js';
import type { Env } from '../../config/env.js';
import { charsetOf, decodeText, jsonShapeFault, mediaTypeOf } from '../../text/json-text.js';
import { unsupportedMediaType } from '../problem/fault.js';
import { Problem } from '../problem/problem.js';
import { inBlocks } from './blocks.js';
import { shapeProblem } from './validation.js';

/**
 * Replace the caller's Content-Type until the handler runs, so that neither a known type (JSON would be parsed) nor a
 * malformed one (Fastify answers 415) gets in the way.
 */
const STREAM = 'application/vnd.notebridge.stream';
const BYTES = 'application/vnd.notebridge.bytes';

/** Bodies up to this length are kept as they arrive: most webhooks are smaller, and blocks would cost them time. */
const SMALL_BYTES = 4 * 1024;

const WITHOUT_BODY = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller's Content-Type while another one replaces it. */
    declaredType: string | null | undefined;
  }
}

/** Makes routes accept only JSON, unless `@RouteOptions` says otherwise. */
export function installBodyPolicy(fastify: FastifyInstance, env: Env): void {
  fastify.decorateRequest('declaredType', null);
  fastify.addContentTypeParser(STREAM, (_request, payload, done) => done(null, payload));
  fastify.addContentTypeParser(BYTES, { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes));
  fastify.addHook('onRoute', (route) => {
    const limit = route.config?.edge?.bodyLimit ?? route.bodyLimit;
    route.bodyLimit = limit === 'WEBHOOK_BODY_LIMIT' ? env.WEBHOOK_BODY_LIMIT : limit;
  });
  fastify.addHook('preParsing', (request, _reply, payload, done) => {
    const problem = WITHOUT_BODY.has(request.method) ? null : prepareBody(request);
    const isKept = !problem && !request.is404 && !isSmall(request) && !isFile(request);
    done(problem, isKept ? inBlocks(payload as Readable) : payload);
  });
  fastify.addHook('preValidation', (request, _reply, done) => {
    if (request.declaredType !== null) request.raw.headers['content-type'] = request.declaredType;
    const isJson = !Buffer.isBuffer(request.body) && request.body !== request.raw;
    done(shapeProblem(request.query) ?? (isJson ? shapeProblem(request.body) : undefined));
  });
}

/** Ends requests whose body does not end in time, except files. Call it before what may answer: Node would read on forever. */
export function installBodyTimeout(fastify: FastifyInstance, { BODY_TIMEOUT_SECONDS }: Env, clock: Clock): void {
  const detail = 'The body did not arrive in time. Send it again.';
  fastify.addHook('onRequest', (request, reply, done) => {
    const { raw } = request;
    done();
    if (isEmpty(raw.headers)) return;
    const end = clock.after(BODY_TIMEOUT_SECONDS * 1_000, () => {
      if (reply.sent) raw.destroy();
      else if (!isFile(request))
        reply.send(new Problem('request-timeout', detail, { headers: { connection: 'close' } }));
    });
    raw.once('end', end).once('close', end);
  });
}

/** True if the handler reads the body as it arrives, which may take hours. */
function isFile({ raw, routeOptions }: FastifyRequest): boolean {
  const body = routeOptions.config.edge?.body;
  return body === 'stream' || (body === 'multipart' && isMultipart(raw.headers));
}

/**
 * Reads JSON bodies: strictly in UTF-8, because a replaced byte would change a name, and within bounds, because validation
 * recurses over levels. No request of this API has more than five.
 */
export function jsonBodyParser(fastify: FastifyInstance): FastifyBodyParser<Buffer> {
  const parse = fastify.getDefaultJsonParser('error', 'error') as FastifyBodyParser<string>;
  return (request, bytes, done) => {
    const text = decodeText(bytes);
    if (text === undefined) return done(new Problem('bad-json', 'The body is not valid UTF-8. Encode it as UTF-8.'));
    const fault = jsonShapeFault(text);
    if (fault) return done(new Problem('too-deep', `The body is ${fault}. Flatten it.`));
    return parse(request, text, done);
  };
}

const isMultipart = (headers: IncomingHttpHeaders) => mediaTypeOf(headers['content-type']) === 'multipart/form-data';

const isSmall = ({ raw: { headers } }: FastifyRequest) =>
  isEmpty(headers) || Number(headers['content-length']) <= SMALL_BYTES;

function isEmpty(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] === undefined && (length === undefined || length === '0');
}

/** Has Fastify pass on a stream, ignore the type of an empty body, and read JSON. @returns why the body is rejected */
function prepareBody(request: FastifyRequest): Problem | null {
  const { headers } = request.raw;
  const body = request.routeOptions.config.edge?.body;
  if (request.is404 || body === 'bytes' || (body === 'stream' && !isMultipart(headers))) {
    request.declaredType = headers['content-type'];
    headers['content-type'] = body === 'bytes' ? BYTES : STREAM;
    return null;
  }
  if (isEmpty(headers)) {
    delete headers['content-type'];
    return null;
  }
  if (body !== undefined && isMultipart(headers)) return null;
  const type = headers['content-type'];
  if (mediaTypeOf(type) !== 'application/json')
    return unsupportedMediaType(body === 'multipart' ? 'application/json or multipart/form-data' : 'application/json');
  if (!/^utf-?8$/.test(charsetOf(type))) return unsupportedMediaType('application/json in UTF-8');
  if ((headers['content-encoding'] ?? 'identity').trim().toLowerCase() === 'identity') return null;
  const detail = 'Compressed bodies are not accepted. Send the body without Content-Encoding.';
  return new Problem('unsupported-encoding', detail);
}
