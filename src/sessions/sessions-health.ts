import { Injectable } from '@nestjs/common';
import { PrismaService } from '../database/prisma.service.js';
import { type Health, HealthIndicator, healthOf } from '../monitoring/health-indicator.js';
import { Contract } from '../platform/contract/contract.js';
import { LONGEST_AWAITED } from './model/longest-awaited.js';

/** Reports sessions and requests that wait. The health of calls says why calls pause. */
@Injectable()
export class SessionsHealth {
  constructor(
    private readonly prisma: PrismaService,
    private readonly contract: Contract,
  ) {}

  @HealthIndicator({ name: 'sessions', needs: ['worker'] })
  async health(): Promise<Health> {
    const [waiting] = await this.prisma.$queryRawUnsafe<{ overdue: boolean; fault: string | null }[]>(
      `SELECT coalesce((SELECT due_at < now() - interval '5 minutes' FROM sessions
           WHERE urgent AND due_at IS NOT NULL AND session_id IS NOT NULL ORDER BY due_at LIMIT 1), false) AS overdue,
         (SELECT coalesce(fault, 'none') FROM ${LONGEST_AWAITED} AS awaited
          WHERE last_event_at < now() - interval '5 minutes') AS fault`,
    );
    const { overdue = false, fault = null } = waiting ?? {};
    const canFetch = this.contract.canCall('getSession');
    return healthOf(
      [
        canFetch && overdue && { code: 'sessions-late', follows: true },
        // Each fault postpones its session, so that none is ever overdue.
        canFetch && fault !== null && { code: 'notes-late', values: { fault }, follows: true },
      ],
      { canFetch },
    );
  }

  @HealthIndicator({ name: 'session-requests', needs: ['worker'] })
  async requestsHealth(): Promise<Health> {
    const [requests] = await this.prisma.$queryRaw<{ overdue: boolean }[]>`
      SELECT EXISTS (SELECT FROM sessions
        WHERE state = 'Requested' AND requested_at < now() - interval '5 minutes') AS overdue`;
    return healthOf([
      requests?.overdue && { code: 'requests-late', values: { operations: 'createSession' }, follows: true },
    ]);
  }
}
