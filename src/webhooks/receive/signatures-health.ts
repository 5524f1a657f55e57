import { Injectable } from '@nestjs/common';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { RejectionsRepository } from './rejections.repository.js';

/** Wrong signatures since the last genuine delivery before it is worth a look: anybody can send a few. */
const WORTH_A_LOOK = 3;

/** Tells of a webhook secret that was rotated at one side only: all that comes is signed with another one. */
@Injectable()
export class SignaturesHealth {
  constructor(private readonly rejections: RejectionsRepository) {}

  @HealthIndicator('webhooks')
  async health(): Promise<Health> {
    const wrongSignatures = await this.rejections.wrongSinceGenuine();
    const facts = { wrongSignatures };
    if (wrongSignatures < WORTH_A_LOOK) return { status: 'ok', facts };
    const reason = `${wrongSignatures} requests with a wrong signature within an hour, and no genuine delivery since: if the platform sent them, add the secret that it signs with to PLATFORM_WEBHOOK_SECRET.`;
    return { status: 'degraded', reason, facts };
  }
}
