import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import type { PlatformCall } from '../../generated/prisma/client.js';

/** A call that has ended. */
export type LoggedCall = Omit<PlatformCall, 'id'>;

/** SQL condition: a call left this process. */
export const IS_SENT = "outcome NOT IN ('held', 'not-configured')";

/** SQL condition: a call of the log may have told the platform something. */
export const MAY_HAVE_TOLD = "outcome NOT IN ('held', 'not-configured', 'unreachable', 'unreadable')";

/** The log of user-management calls: for a person's page, the metrics and `trace`. */
@Injectable()
export class CallLog {
  constructor(private readonly prisma: PrismaService) {}

  async add(tx: Tx, { durationMs, ...call }: LoggedCall): Promise<void> {
    await tx.platformCall.create({ data: { ...call, durationMs: Math.round(durationMs) } });
  }

  /** True if a call is logged already. */
  async has(tx: Tx, call: Pick<LoggedCall, 'personId' | 'operation' | 'at'>): Promise<boolean> {
    return (await tx.platformCall.findFirst({ where: call, select: { id: true } })) !== null;
  }

  /** The newest calls of a person, newest first. */
  of(personId: string, take: number): Promise<PlatformCall[]> {
    return this.prisma.platformCall.findMany({ where: { personId }, orderBy: { id: 'desc' }, take });
  }

  /** The calls of the last minute, by the database's clock. */
  async inLastMinute(): Promise<number> {
    const [row] = await this.prisma.$queryRawUnsafe<[{ calls: number }]>(
      // A minute has at most 300 calls. The order makes PostgreSQL use the index, even with statistics of an empty table.
      `SELECT count(*)::int AS calls FROM (SELECT outcome FROM platform_calls WHERE at > now() - interval '1 minute'
         ORDER BY at LIMIT 1000) AS latest WHERE ${IS_SENT}`,
    );
    return row.calls;
  }
}
