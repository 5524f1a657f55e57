import { Controller, Get, Param } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import { Audit } from '../../audit/audit.js';
import { PrismaService } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { SessionSeal } from '../model/session-seal.js';
import { ProcessingSessionResponse } from '../model/session-view.js';

/** Answers of the Processing API; subjects of the feed point to this route. */
@ApiTags('sessions')
@Controller('v1')
@Scopes('notes:read')
export class ProcessingController {
  constructor(
    private readonly prisma: PrismaService,
    private readonly seal: SessionSeal,
    private readonly audit: Audit,
  ) {}

  /** Get the platform's answer about a processing id, and its session */
  @Get('processing-sessions/:processingId')
  async session(@Param('processingId') processingId: string): Promise<ProcessingSessionResponse> {
    const found = await this.prisma.processingSession.findUnique({
      where: { processingId },
      include: { session: { select: { id: true, sessionId: true } } },
    });
    if (!found) throw new Problem('unknown-processing-session', 'No processing session has this id.');
    const { session, answer, fault, updatedAt } = found;
    this.audit.about('processing-session', processingId);
    this.audit.about('session', session?.id);
    return {
      processingId,
      session: session?.id ?? null,
      sessionId: session?.sessionId ?? null,
      answer: this.seal.processingAnswer.open(processingId, answer),
      fault,
      updatedAt,
    };
  }
}
