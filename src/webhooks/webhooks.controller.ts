import { Controller, HttpCode, Post, Req } from '@nestjs/common';
import { ApiBody, ApiHeader, ApiNoContentResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { Public } from '../access/identity/scopes.js';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { problemOf } from '../http/problem/fault.js';
import { Problem } from '../http/problem/problem.js';
import { RouteOptions } from '../http/request/route-options.js';
import { WEBHOOK_SIGNATURE_HEADER, WEBHOOK_TIMESTAMP_HEADER } from '../platform/contract/wire-types.js';
import { refusalText } from '../words/refusal-words.js';
import { InboxWriter } from './receive/inbox.writer.js';
import { ReceiverHealth } from './receive/receiver-health.js';
import { verifyDelivery } from './receive/verify-delivery.js';

const WEBHOOK_PATH = '/webhooks/platform';

/** The receiver's path, and those below its folder. */
const NEAR = /^\/+webhooks(\/|$)/;
const EXACT = /^\/+webhooks\/+platform\/*$/;

const CHALLENGE = { 'www-authenticate': 'x-service-signature' };
const UNKNOWN = 'The delivery may not have been stored. Send it again.';
const NOT_KEPT = new Problem('not-kept', UNKNOWN, { retryAfterSeconds: 1 });

/** Receives the platform's webhooks: verify, enqueue, answer. 204 means that the delivery is committed. */
@ApiTags('webhooks')
@Controller('webhooks')
@Public()
export class WebhooksController {
  private readonly rules;

  constructor(
    env: Env,
    private readonly clock: Clock,
    private readonly inbox: InboxWriter,
    private readonly health: ReceiverHealth,
  ) {
    this.rules = { secrets: env.PLATFORM_WEBHOOK_SECRET, maxAgeSeconds: env.WEBHOOK_MAX_AGE_SECONDS };
  }

  /**
   * Receive a webhook of the platform
   *
   * @remarks Needs no API key, because the signature proves that the platform sent it.
   */
  @Post('platform')
  @HttpCode(204)
  @RouteOptions({ body: 'bytes', bodyLimit: 'WEBHOOK_BODY_LIMIT', hot: true, unlimited: true })
  @ApiHeader({ name: WEBHOOK_TIMESTAMP_HEADER, required: true, description: 'Milliseconds since the Unix epoch' })
  @ApiHeader({
    name: WEBHOOK_SIGNATURE_HEADER,
    required: true,
    description: 'HMAC-SHA256 of `v0:`, the timestamp, `:` and the body, in hex',
  })
  @ApiBody({ schema: { type: 'object' } })
  @ApiNoContentResponse({ description: 'The delivery is stored' })
  async receive(@Req() { raw, body }: FastifyRequest): Promise<void> {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
    const verified = verifyDelivery(raw.headers, bytes, this.rules, this.clock.now().getTime());
    if ('cause' in verified) {
      this.health.refused(verified);
      const { fault, action } = refusalText(verified);
      throw new Problem('not-genuine', `${fault} ${action}`, { headers: CHALLENGE });
    }
    await this.inbox.store(verified).catch(() => {
      throw NOT_KEPT;
    });
    this.health.genuine();
  }

  /** Counts a request that did not reach `receive`, but that the platform may have sent. */
  rejected(error: unknown, { routeOptions, is404, method, url, headers }: FastifyRequest): void {
    const [path = ''] = url.split('?', 1);
    if (routeOptions.url === WEBHOOK_PATH && problemOf(error)?.status === 413)
      this.health.refused({ cause: 'body-too-large' });
    else if (is404 && EXACT.test(path)) this.health.refused({ cause: 'wrong-method' });
    else if (is404 && method === 'POST' && (NEAR.test(path) || WEBHOOK_SIGNATURE_HEADER in headers))
      this.health.refused({ cause: 'wrong-path' });
  }
}
