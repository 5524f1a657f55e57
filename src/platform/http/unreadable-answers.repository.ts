import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { PrismaService } from '../../database/prisma.service.js';
import type { OperationName } from '../contract/operations.js';

const DAY_MS = 24 * 60 * 60_000;

/** The newest unreadable answer to each operation, until one is readable. Shared by all processes. */
@Injectable()
export class UnreadableAnswers {
  constructor(
    private readonly prisma: PrismaService,
    private readonly clock: Clock,
  ) {}

  /** Stores why an answer is unreadable. */
  async note(operation: OperationName, reason: string): Promise<void> {
    await this.prisma.$executeRaw`INSERT INTO unreadable_answers VALUES (${operation}, ${reason})
      ON CONFLICT (operation) DO UPDATE SET reason = excluded.reason, at = excluded.at`;
  }

  /** Removes what any process has stored about an operation, once it is answered. */
  async answered(operation: OperationName): Promise<void> {
    await this.prisma.unreadableAnswer.deleteMany({ where: { operation } });
  }

  /** Those of the last day, newest first. */
  list(): Promise<{ operation: string; reason: string }[]> {
    const at = { gt: new Date(this.clock.now().getTime() - DAY_MS) };
    return this.prisma.unreadableAnswer.findMany({ where: { at }, orderBy: { at: 'desc' } });
  }
}
