import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorTrace } from '../../errors/error-trace.js';
import { problemOf } from './fault.js';
import { Problem } from './problem.js';

/** Here, because some errors are answered before any hook of the edge. */
const NO_STORE = { 'cache-control': 'no-store' };

/** Maximum bytes of an unread body that are read and discarded. */
const DRAINED_BYTES = 1024 ** 2;

/** The form of the errors of some paths. */
export interface ErrorForm {
  isOf(path: string): boolean;
  readonly mediaType: string;
  /** The body, which becomes JSON. */
  body(problem: Problem): object;
}

/** RFC 9457 problem details, the form of all other errors. */
const PROBLEM_DETAILS: Omit<ErrorForm, 'isOf'> = {
  mediaType: 'application/problem+json',
  body: (problem) => problem.details(),
};

/** Answers every error in the form of its path; unexpected ones with nothing but a reference to the log. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  private readonly log = new Logger('Http');

  /**
   * @param forms of paths whose errors are not problem details
   * @param beforeAnswer runs before the answer; an error that it throws is answered instead
   */
  constructor(
    private readonly forms: readonly ErrorForm[] = [],
    private readonly beforeAnswer?: (error: unknown, request: FastifyRequest) => Promise<void>,
  ) {}

  async catch(error: unknown, host: ArgumentsHost): Promise<void> {
    const http = host.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const answered = await this.beforeAnswer?.(error, request).catch((instead: unknown) => ({ instead }));
    this.answer(answered ? answered.instead : error, request, http.getResponse<FastifyReply>());
  }

  /** Sends the answer; also for errors that never reach Nest, such as a malformed URL. */
  answer(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const problem = problemOf(error) ?? this.unexpected(error, request);
    if (reply.sent || reply.raw.headersSent) {
      reply.raw.destroy();
      return;
    }
    if (request.raw.httpVersionMajor < 2 && isLongUnread(request)) reply.header('connection', 'close');
    const { mediaType, body } = this.formOf(request);
    void reply
      .code(problem.status)
      .headers({ ...NO_STORE, ...problem.headers() })
      .type(`${mediaType}; charset=utf-8`)
      .send(JSON.stringify(body(problem)));
  }

  /** By the route, or by the path if it leads to none. */
  private formOf({ url, routeOptions }: FastifyRequest): Omit<ErrorForm, 'isOf'> {
    const [path = ''] = (routeOptions?.url ?? url).split('?', 1);
    return this.forms.find((form) => form.isOf(path)) ?? PROBLEM_DETAILS;
  }

  private unexpected(error: unknown, request: FastifyRequest): Problem {
    const reference = randomUUID();
    const route = `${request.method} ${request.routeOptions?.url ?? 'unmatched'}`;
    this.log.error({ msg: 'a request failed unexpectedly', reference, route, ...errorTrace(error) });
    return new Problem('internal', `An unexpected error occurred. Find it in the log by its reference ${reference}.`, {
      extensions: { reference },
    });
  }
}

/**
 * True if more of the body is outstanding than is worth reading. A short rest is read, otherwise the sender would find
 * the connection closed before it reads the answer.
 */
function isLongUnread({ raw }: FastifyRequest): boolean {
  if (raw.complete) return false;
  return raw.headers['transfer-encoding'] !== undefined || Number(raw.headers['content-length']) > DRAINED_BYTES;
}

const OF_PARSER: Record<string, Problem> = {
  HPE_HEADER_OVERFLOW: new Problem('headers-too-large', 'The headers are too large. Send shorter ones.'),
  ERR_HTTP_REQUEST_TIMEOUT: new Problem('request-timeout', 'The request did not arrive in time. Send it again.'),
};
const MALFORMED = new Problem('bad-request', 'This is not a well-formed HTTP request.');

/** Answers what Node's HTTP parser refused, before there is a request that Fastify could answer. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  if (socket.writable) {
    const problem = OF_PARSER[error.code ?? ''] ?? MALFORMED;
    const body = JSON.stringify(problem.details());
    socket.write(
      `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\nContent-Type: application/problem+json\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  }
  socket.destroy();
}
