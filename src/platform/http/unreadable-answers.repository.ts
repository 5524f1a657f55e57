import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { PrismaService } from '../../database/prisma.service.js';
import type { OperationName } from '../contract/operations.js';

const DAY_MS = 24 * 60 * 60_000;

/** How long a process takes it for granted that the database names no unreadable answer, so that most calls need no query. */
const KNOWN_MS = 10_000;

/** The newest unreadable answer to each operation, until one is readable. Shared by all processes. */
@Injectable()
export class UnreadableAnswers {
  /** When this process last removed what was stored about an operation. */
  private readonly removedAt = new Map<OperationName, number>();

  constructor(
    private readonly prisma: PrismaService,
    private readonly clock: Clock,
  ) {}

  /** Stores why an answer is unreadable. */
  async note(operation: OperationName, reason: string): Promise<void> {
    this.removedAt.delete(operation);
    await this.prisma.$executeRaw`INSERT INTO unreadable_answers VALUES (${operation}, ${reason})
      ON CONFLICT (operation) DO UPDATE SET reason = excluded.reason, at = excluded.at`;
  }

  /** Removes what any process has stored about an operation, once it is answered. */
  async answered(operation: OperationName): Promise<void> {
    const now = this.clock.monotonicMs();
    if (now - (this.removedAt.get(operation) ?? Number.NEGATIVE_INFINITY) < KNOWN_MS) return;
    await this.prisma.unreadableAnswer.deleteMany({ where: { operation } });
    this.removedAt.set(operation, now);
  }

  /** Those of the last day, newest first. */
  list(): Promise<{ operation: string; reason: string }[]> {
    const at = { gt: new Date(this.clock.now().getTime() - DAY_MS) };
    return this.prisma.unreadableAnswer.findMany({ where: { at }, orderBy: { at: 'desc' } });
  }
}
