import { randomUUID } from 'node:crypto';
import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorTrace } from './error-trace.js';
import { problemOf } from './fault.js';
import { Problem } from './problem.js';

/** Answers every error as RFC 9457 problem details; unexpected ones with nothing but a reference to the log. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  private readonly log = new Logger('Http');

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }

  /** Sends the answer; also for errors that never reach Nest, such as a malformed URL. */
  answer(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const problem = problemOf(error) ?? this.unexpected(error, request);
    if (reply.sent || reply.raw.headersSent) {
      reply.raw.destroy();
      return;
    }
    // A body that nobody reads any more would be drained to its end on a connection that is kept alive.
    if (request.raw.httpVersionMajor < 2 && hasBody(request) && !request.raw.complete)
      reply.header('connection', 'close');
    void reply
      .code(problem.status)
      .headers(problem.headers())
      .type('application/problem+json; charset=utf-8')
      .send(JSON.stringify(problem.details()));
  }

  private unexpected(error: unknown, request: FastifyRequest): Problem {
    const reference = randomUUID();
    const route = `${request.method} ${request.routeOptions?.url ?? 'unmatched'}`;
    this.log.error({ msg: 'a request failed unexpectedly', reference, route, ...errorTrace(error) });
    return new Problem(500, 'internal', `Something went wrong here; the log has it under reference ${reference}.`, {
      extensions: { reference },
    });
  }
}

function hasBody(request: FastifyRequest): boolean {
  return request.raw.headers['transfer-encoding'] !== undefined || Number(request.raw.headers['content-length']) > 0;
}
