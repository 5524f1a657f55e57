import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import type { FastifyBodyParser, FastifyInstance, FastifyRequest } from 'fastify';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { unsupportedMediaType } from '../problem/fault.js';
import { Problem } from '../problem/problem.js';
import { charsetOf, decodeText, jsonShapeFault, mediaTypeOf } from './json-text.js';
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

/** Makes routes take JSON only, unless they say otherwise (`@RouteOptions`), and bounds the bodies that arrive. */
export function installBodyPolicy(fastify: FastifyInstance, bodies: ArrivingBodies): void {
  fastify.decorateRequest('declaredType', null);
  fastify.addContentTypeParser(STREAM, (_request, payload, done) => done(null, payload));
  fastify.addHook('onRoute', (route) => {
    route.bodyLimit = route.config?.edge?.bodyLimit ?? route.bodyLimit;
  });
  fastify.addHook('preParsing', (request, reply, payload, done) => {
    const refusal = prepareBody(request);
    if (refusal) return done(refusal);
    if (!request.raw.complete && isReadIntoMemory(request))
      bodies.watch(payload, (problem) => void reply.send(problem));
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
    const text = decodeText(bytes);
    if (text === undefined) return done(new Problem(400, 'bad-json', 'The body is not valid UTF-8. Send it in UTF-8.'));
    const fault = jsonShapeFault(text);
    if (fault) return done(new Problem(400, 'too-deep', `The body is ${fault}. Flatten it.`));
    return parse(request, text, done);
  };
}

const isMultipart = (headers: IncomingHttpHeaders) => mediaTypeOf(headers['content-type']) === 'multipart/form-data';

function isEmpty(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] === undefined && (length === undefined || length === '0');
}

/** Answers whether a request has a body that Fastify reads into memory before the handler runs. */
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
  const detail = 'Compressed bodies are not taken; send it without Content-Encoding.';
  return new Problem(415, 'unsupported-encoding', detail);
}

type Limits = Pick<Env, 'BODY_TIMEOUT_SECONDS' | 'ARRIVING_BODIES_LIMIT'>;

interface ArrivingBody {
  bytes: number;
  /** When it must be complete, in monotonic milliseconds. */
  readonly dueMs: number;
  readonly refuse: (problem: Problem) => void;
}

/** The rest of a body that is refused never comes: the connection goes with the answer. */
const CLOSING = { connection: 'close' };

/**
 * The bodies on their way into memory: each has to be there in time, and together they have so many bytes. When these
 * are used up, the body that began first gives way: senders who stall can't keep out those who don't.
 */
@Injectable()
export class ArrivingBodies {
  /** In the order in which they began. */
  private readonly arriving = new Set<ArrivingBody>();
  /** Bytes in memory of all bodies that are not complete. */
  bytes = 0;
  /** One for all bodies, because it would cost more than the rest of the watch. */
  private isTimed = false;

  constructor(
    @Inject(Env) private readonly limits: Limits,
    private readonly clock: Clock,
  ) {}

  /** Counts a body; its reader has to begin in this turn of the event loop. @param refuse answers its sender */
  watch(payload: NodeJS.ReadableStream, refuse: (problem: Problem) => void): void {
    const body: ArrivingBody = {
      bytes: 0,
      dueMs: this.clock.monotonicMs() + this.timeoutMs,
      refuse: (problem: Problem) => {
        leave();
        refuse(problem);
      },
    };
    const count = (chunk: Buffer) => {
      body.bytes += chunk.length;
      this.bytes += chunk.length;
      this.refuseOldest();
    };
    const leave = () => {
      payload.off('data', count).off('end', leave).off('close', leave);
      if (this.arriving.delete(body)) this.bytes -= body.bytes;
    };
    this.arriving.add(body);
    if (!this.isTimed) this.startTimer(this.timeoutMs);
    payload.on('data', count).once('end', leave).once('close', leave);
  }

  /** Ends a connection whose request was answered, if its body does not end in time: Node would read on without a limit. */
  cutUnread(raw: IncomingMessage): void {
    if (raw.complete) return;
    const cut = this.clock.after(this.timeoutMs, () => raw.destroy());
    raw.once('close', cut);
  }

  private get timeoutMs(): number {
    return this.limits.BODY_TIMEOUT_SECONDS * 1_000;
  }

  private startTimer(ms: number): void {
    this.isTimed = true;
    this.clock.after(ms, () => this.refuseLate());
  }

  private refuseLate(): void {
    this.isTimed = false;
    const nowMs = this.clock.monotonicMs();
    const late = 'The body did not arrive in time; send it again.';
    for (const { dueMs, refuse } of this.arriving) {
      if (dueMs > nowMs) {
        this.startTimer(dueMs - nowMs);
        return;
      }
      refuse(new Problem(408, 'request-timeout', late, { headers: CLOSING }));
    }
  }

  private refuseOldest(): void {
    for (const oldest of this.arriving) {
      if (this.bytes <= this.limits.ARRIVING_BODIES_LIMIT) return;
      const detail = 'Too many bodies are arriving at once, and this one was among the slowest; send it again.';
      oldest.refuse(new Problem(503, 'busy', detail, { retryAfterSeconds: 1, headers: CLOSING }));
    }
  }
}
