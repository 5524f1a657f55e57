import { Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Env } from '../../config/env.js';
import { ProblemFilter } from '../../http/problem/problem.filter.js';
import { Problem } from '../../http/problem/problem.js';
import { type Receipt, Receiver } from './receiver.js';
import { Rejections } from './rejections.js';

/** Where the platform sends its webhooks. */
const RECEIVER_PATH = '/webhooks/platform';

/** The Content-Type is not judged: it is taken for this one, whose parser keeps the bytes as they came. */
const BYTES = 'application/octet-stream';

const NOT_GENUINE = new Problem(
  401,
  'not-genuine',
  'The request is not signed with the webhook secret of this service.',
  { headers: { 'www-authenticate': 'x-service-signature' } },
);
const NOT_KEPT = new Problem(503, 'not-kept', 'The delivery is not known to be kept; send it again.', {
  retryAfterSeconds: 1,
});

/**
 * The receiver's route, straight on Fastify in a scope of its own: Nest's guards, pipes and interceptors have no part
 * in it, and it is the one route whose speed counts. A flood of requests leaves no log lines: the ledger counts them.
 */
@Injectable()
export class ReceiverRoute implements OnModuleInit {
  private readonly problems = new ProblemFilter();

  constructor(
    private readonly host: HttpAdapterHost,
    private readonly env: Env,
    private readonly receiver: Receiver,
    private readonly rejections: Rejections,
  ) {}

  onModuleInit(): void {
    if (!this.env.hasRole('api') || !this.host.httpAdapter) return;
    const fastify = this.host.httpAdapter.getInstance<FastifyInstance>();
    fastify.register((scope, _options, done) => {
      scope.setErrorHandler((error, request, reply) => this.failed(error, request, reply));
      scope.addContentTypeParser(BYTES, { parseAs: 'buffer' }, (_request, body, parsed) => parsed(null, body));
      scope.addHook('onRequest', (request, reply, next) => {
        const { headers } = request.raw;
        if (!this.receiver.admits(headers)) return this.answer('not-genuine', request, reply);
        headers['content-type'] = BYTES;
        next();
      });
      scope.post<{ Body: Buffer }>(
        RECEIVER_PATH,
        { bodyLimit: this.env.WEBHOOK_BODY_LIMIT, config: { edge: { body: 'raw', hot: true } } },
        (request, reply) => {
          const receipt = this.receiver.receive(request.raw.headers, request.body);
          if (typeof receipt === 'string') this.answer(receipt, request, reply);
          else void receipt.then((later) => this.answer(later, request, reply));
        },
      );
      done();
    });
  }

  private answer(receipt: Receipt, request: FastifyRequest, reply: FastifyReply): void {
    if (receipt === 'kept') void reply.code(204).send();
    else this.problems.answer(receipt === 'unavailable' ? NOT_KEPT : NOT_GENUINE, request, reply);
  }

  private failed(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    if (error instanceof Error && 'code' in error && error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
      this.rejections.count('body-too-large');
    }
    this.problems.answer(error, request, reply);
  }
}
