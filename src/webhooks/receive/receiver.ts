import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { GroupCommit } from '../../database/group-commit.js';
import { codeOf, isDatabaseUnavailable } from '../../http/problem/fault.js';
import { ProblemFilter } from '../../http/problem/problem.filter.js';
import { Problem } from '../../http/problem/problem.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { Metrics } from '../../http/server/metrics.js';
import { requestSpan } from '../../http/server/request-spans.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { traceparentOf } from '../../tracing/trace.js';
import { Vault } from '../../vault/vault.js';
import { bodyPlace, InboxWriterRepository, type IncomingRow } from './inbox-writer.repository.js';
import { Rejections } from './rejections.js';
import { headerFault, type RefusalCause, verifyDelivery } from './verify-delivery.js';

/** The Content-Type is not judged: it is taken for this one, whose parser keeps the bytes as they came. */
const BYTES = 'application/octet-stream';

const NO_COMMIT =
  'The inbox can not commit: PostgreSQL is away, refuses writes, or holds its tables locked (pg_stat_activity says for whom).';

/** The platform gives up after five seconds; 503 must leave within two. */
const LIMITS = {
  inFlight: 2, // while one waits for the disk, the next is being gathered and sent
  batch: { rows: 500, bytes: 8 * 1024 ** 2 },
  waiting: { rows: 10_000, bytes: 64 * 1024 ** 2 },
  deadlineMs: 1_800,
};

const UNSIGNED = 'The request is not signed with the webhook secret of this service.';
const CHALLENGE = { 'www-authenticate': 'x-service-signature' };
const NOT_GENUINE = new Problem(401, 'not-genuine', UNSIGNED, { headers: CHALLENGE });
const UNKNOWN = 'The delivery is not known to be kept; send it again.';
const NOT_KEPT = new Problem(503, 'not-kept', UNKNOWN, { retryAfterSeconds: 1 });

/**
 * Verifies deliveries, seals them, appends them to the inbox, and answers only when they are committed. Its route is
 * straight on Fastify, in a scope of its own, for it is the one route whose speed counts. A flood of requests leaves no
 * log lines: the ledger counts them.
 */
@Injectable()
export class Receiver implements OnModuleInit, OnModuleDestroy {
  private readonly problems = new ProblemFilter();
  private readonly rules;
  private readonly commits: GroupCommit<IncomingRow>;
  private readonly notifier: ThrottledNotifier;
  private readonly committed;
  private readonly notCommitted;

  constructor(
    private readonly host: HttpAdapterHost,
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly vault: Vault,
    private readonly writer: InboxWriterRepository,
    private readonly rejections: Rejections,
    notifier: QueueNotifier,
    metrics: Metrics,
  ) {
    this.rules = { secrets: env.PLATFORM_WEBHOOK_SECRET, maxAgeSeconds: env.WEBHOOK_MAX_AGE_SECONDS };
    this.notifier = new ThrottledNotifier(() => notifier.notify(WEBHOOK_INBOX_QUEUE, 'received'));
    const sizes = [1, 2, 5, 10, 20, 50, 100, 200, LIMITS.batch.rows];
    const groups = metrics.histogram('webhook_commit_rows', 'Deliveries in one commit', [], sizes);
    this.commits = new GroupCommit(LIMITS, {
      commit: async (rows) => {
        await writer.insert(rows);
        groups.observe(rows.length);
        this.notifier.notify();
      },
      isUnavailable: isDatabaseUnavailable,
      now: () => clock.monotonicMs(),
    });
    this.committed = metrics.counter('webhook_kept_total', 'Deliveries that were committed and acknowledged');
    this.notCommitted = metrics.counter('webhook_not_kept_total', 'Genuine deliveries that were answered 503');
    metrics.gauge('webhook_waiting_room', 'Deliveries that wait for a commit', [], (gauge) =>
      gauge.set(this.commits.load.waiting),
    );
  }

  onModuleInit(): void {
    if (!this.env.hasRole('api') || !this.host.httpAdapter) return;
    this.host.httpAdapter.getInstance<FastifyInstance>().register((scope, _options, done) => {
      scope.setErrorHandler((error, request, reply) => {
        if (codeOf(error) === 'FST_ERR_CTP_BODY_TOO_LARGE') this.rejections.count('body-too-large');
        this.problems.answer(error, request, reply);
      });
      scope.addContentTypeParser(BYTES, { parseAs: 'buffer' }, (_request, body, parsed) => parsed(null, body));
      scope.addHook('onRequest', (request, reply, next) => {
        const { headers } = request.raw;
        const fault = headerFault(headers);
        if (fault !== undefined) return this.refuse(fault, request, reply);
        headers['content-type'] = BYTES;
        next();
      });
      const route = { bodyLimit: this.env.WEBHOOK_BODY_LIMIT, config: { edge: { body: 'raw', hot: true } } } as const;
      scope.post<{ Body: Buffer }>('/webhooks/platform', route, (request, reply) => this.receive(request, reply));
      done();
    });
  }

  @HealthIndicator({ name: 'inbox', vital: true })
  async health(): Promise<Health> {
    const facts = { waiting: this.commits.load.waiting };
    try {
      await this.writer.tryCommit();
      return { status: 'ok', facts };
    } catch {
      return { status: 'down', reason: NO_COMMIT, facts };
    }
  }

  /** From here on deliveries are answered 503, and the sender retries; what was accepted is still committed. */
  async onModuleDestroy(): Promise<void> {
    await this.commits.close();
    this.notifier.close();
  }

  private receive(request: FastifyRequest<{ Body: Buffer }>, reply: FastifyReply) {
    const verified = verifyDelivery(request.raw.headers, request.body, this.rules, this.clock.now().getTime());
    if (typeof verified === 'string') return this.refuse(verified, request, reply);
    const { signature, sentAt, secretIndex } = verified;
    const body = this.vault.seal(bodyPlace(signature), request.body);
    const traceparent = traceparentOf(requestSpan(request, reply, []));
    const row = { signature: Buffer.from(signature, 'hex'), body, sentAt, secretIndex, traceparent };
    this.commits.add(row, body.length).then(
      () => {
        this.committed.inc();
        void reply.code(204).send();
      },
      () => {
        this.notCommitted.inc();
        this.problems.answer(NOT_KEPT, request, reply);
      },
    );
  }

  private refuse(cause: RefusalCause, request: FastifyRequest, reply: FastifyReply): void {
    this.rejections.count(cause);
    this.problems.answer(NOT_GENUINE, request, reply);
  }
}

/** Milliseconds between two notifications at most: under load one activates a worker for many commits. */
const NOTIFY_EVERY_MS = 250;

/** Notifies at once after a pause, and otherwise once at the end of the interval, however often it is called. */
export class ThrottledNotifier {
  private timer: NodeJS.Timeout | undefined;
  private pending = false;

  constructor(private readonly send: () => void) {}

  notify(): void {
    this.pending = true;
    if (!this.timer) this.sendPending();
  }

  /** Sends what is pending, and nothing after it. */
  close(): void {
    clearTimeout(this.timer);
    if (this.pending) this.send();
  }

  private sendPending(): void {
    this.timer = undefined;
    if (!this.pending) return;
    this.pending = false;
    this.send();
    this.timer = setTimeout(() => this.sendPending(), NOTIFY_EVERY_MS);
  }
}
