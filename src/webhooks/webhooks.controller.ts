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
import { InboxWriter } from './receive/inbox.writer.js';
import { Rejections } from './receive/rejections.js';
import { headerFault, verifyDelivery } from './receive/verify-delivery.js';

const WEBHOOK_PATH = '/webhooks/platform';

const UNSIGNED = 'The signature is missing or wrong. Sign with the webhook secret of this service.';
const CHALLENGE = { 'www-authenticate': 'x-service-signature' };
const NOT_GENUINE = new Problem('not-genuine', UNSIGNED, { headers: CHALLENGE });
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
    private readonly rejections: Rejections,
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
    description: 'HMAC-SHA256 of `v0:`, the timestamp, `:` and the body, in lower-case hex',
  })
  @ApiBody({ schema: { type: 'object' } })
  @ApiNoContentResponse({ description: 'The delivery is stored' })
  async receive(@Req() { raw, body }: FastifyRequest): Promise<void> {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
    const verified =
      headerFault(raw.headers) ?? verifyDelivery(raw.headers, bytes, this.rules, this.clock.now().getTime());
    if (typeof verified === 'string') {
      this.rejections.count(verified);
      throw NOT_GENUINE;
    }
    await this.inbox.store(verified).catch(() => {
      throw NOT_KEPT;
    });
  }

  /** Counts a request that was rejected before it reached `receive`. A genuine sender may send one that is too large. */
  rejected(error: unknown, { routeOptions }: FastifyRequest): void {
    if (routeOptions.url === WEBHOOK_PATH && problemOf(error)?.status === 413) this.rejections.count('body-too-large');
  }
}
