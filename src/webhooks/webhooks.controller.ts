import { Injectable } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { WebhookBodies } from '../http/body/body-memory.js';
import { codeOf } from '../http/problem/fault.js';
import { ProblemFilter } from '../http/problem/problem.filter.js';
import { Problem } from '../http/problem/problem.js';
import { AnswerCounts } from '../http/server/answer-counts.js';
import { Vault } from '../vault/vault.js';
import { WEBHOOK_PATH } from './described-webhook.js';
import { InboxAppender } from './receive/inbox-appender.js';
import { bodyPlace } from './receive/inbox-writer.repository.js';
import { Rejections } from './receive/rejections.js';
import { headerFault, type RejectionCause, verifyDelivery } from './receive/verify-delivery.js';

/** Replaces the Content-Type of a delivery, because the parser of this type keeps the bytes as they are. */
const BYTES = 'application/octet-stream';

const UNSIGNED = 'The signature is missing or wrong. Sign with the webhook secret of this service.';
const CHALLENGE = { 'www-authenticate': 'x-service-signature' };
const NOT_GENUINE = new Problem('not-genuine', UNSIGNED, { headers: CHALLENGE });
const UNKNOWN = 'The delivery may not have been stored. Send it again.';
const NOT_KEPT = new Problem('not-kept', UNKNOWN, { retryAfterSeconds: 1 });

/**
 * Receives the platform's webhooks: verify, enqueue, answer. 204 means that the delivery is committed.
 *
 * Its route is not Nest's, whose pipeline costs 27 µs of CPU per delivery (×0.73 of the throughput). Without the hooks of
 * the edge a delivery costs 38 µs instead of 48, half of the difference for the headers of browsers (×0.82 of the group
 * commit floor instead of ×0.72). Requests are counted and not logged, so that a flood does not fill the disk.
 */
@Injectable()
export class WebhooksController {
  private readonly problems = new ProblemFilter();
  private readonly rules;

  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly vault: Vault,
    private readonly inbox: InboxAppender,
    private readonly rejections: Rejections,
    private readonly bodies: WebhookBodies,
    private readonly answers: AnswerCounts,
  ) {
    this.rules = { secrets: env.PLATFORM_WEBHOOK_SECRET, maxAgeSeconds: env.WEBHOOK_MAX_AGE_SECONDS };
  }

  /** Registers the route. @param fastify an instance without the hooks of the edge */
  async register(fastify: FastifyInstance): Promise<void> {
    if (!this.env.hasRole('api')) return;
    fastify.setErrorHandler((error, request, reply) => {
      if (codeOf(error) === 'FST_ERR_CTP_BODY_TOO_LARGE') this.rejections.count('body-too-large');
      this.answer(error, request, reply);
    });
    fastify.addContentTypeParser(BYTES, { parseAs: 'buffer' }, (_request, body, parsed) => parsed(null, body));
    fastify.addHook('onRequest', (request, reply, next) => this.checkHeaders(request, reply, next));
    const route = { bodyLimit: this.env.WEBHOOK_BODY_LIMIT };
    fastify.post<{ Body: Buffer }>(WEBHOOK_PATH, route, (request, reply) => this.receive(request, reply));
    await fastify.ready();
  }

  /** Rejects a request by its headers, before its body is read. */
  private checkHeaders(request: FastifyRequest, reply: FastifyReply, next: () => void) {
    const { raw } = request;
    const fault = headerFault(raw.headers);
    if (fault !== undefined) return this.reject(fault, request, reply);
    raw.headers['content-type'] = BYTES;
    this.bodies.watch(raw, (problem) => this.answer(problem, request, reply));
    next();
  }

  private receive(request: FastifyRequest<{ Body: Buffer }>, reply: FastifyReply) {
    const verified = verifyDelivery(request.raw.headers, request.body, this.rules, this.clock.now().getTime());
    if (typeof verified === 'string') return this.reject(verified, request, reply);
    const { signature, sentAt, secretIndex } = verified;
    const body = this.vault.seal(bodyPlace(signature), request.body);
    this.inbox.append({ signature: Buffer.from(signature, 'hex'), body, sentAt, secretIndex }).then(
      () => {
        this.answers.count(204);
        void reply.code(204).send();
      },
      () => {
        this.inbox.countNotKept();
        this.answer(NOT_KEPT, request, reply);
      },
    );
  }

  private reject(cause: RejectionCause, request: FastifyRequest, reply: FastifyReply): void {
    this.rejections.count(cause);
    this.answer(NOT_GENUINE, request, reply);
  }

  private answer(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    this.problems.answer(error, request, reply);
    this.answers.count(reply.statusCode);
    this.bodies.cutUnread(request.raw);
  }
}
