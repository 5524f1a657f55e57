import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PrismaService, toBytes } from '../../database/prisma.service.js';
import type { FetchedInsights } from '../model/answer-parts.js';
import { INSIGHT_PARTS, type InsightPart, SessionSeal } from '../model/session-seal.js';

/** Stores what the platform gained from a session's audio, sealed. */
@Injectable()
export class InsightsRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly seal: SessionSeal,
  ) {}

  /**
   * Stores the parts that an answer speaks of; the session's row must be locked.
   *
   * @param session our id
   */
  async store(tx: PoolClient, session: string, insights: FetchedInsights, fetchedAt: Date): Promise<void> {
    const parts = INSIGHT_PARTS.filter((part) => insights[part] !== undefined);
    if (parts.length === 0) return;
    const prisma = await this.prisma.in(tx);
    const fingerprint = toBytes(this.seal.fingerprintInsights(parts.map((part) => [part, insights[part]])));
    if (await prisma.sessionInsights.count({ where: { ourSessionId: session, fingerprint } })) return;
    const data = { fingerprint, fetchedAt, ...this.sealed(session, parts, insights) };
    await prisma.sessionInsights.upsert({
      where: { ourSessionId: session },
      create: { ourSessionId: session, ...data },
      update: data,
    });
  }

  /** Moves what is known of one session to another that has nothing, sealed for its new place. @param from, to ours */
  async move(tx: PoolClient, from: string, to: string): Promise<void> {
    const prisma = await this.prisma.in(tx);
    const known = await prisma.sessionInsights.findUnique({ where: { ourSessionId: from } });
    if (!known) return;
    const opened = INSIGHT_PARTS.map((part) => [part, this.seal.insights[part].open(from, known[part])]);
    const data = { ...known, ourSessionId: to, ...this.sealed(to, INSIGHT_PARTS, Object.fromEntries(opened)) };
    await prisma.sessionInsights.delete({ where: { ourSessionId: from } });
    if (await prisma.sessionInsights.count({ where: { ourSessionId: to } })) return;
    await prisma.sessionInsights.create({ data });
  }

  private sealed(session: string, parts: readonly InsightPart[], insights: FetchedInsights) {
    const sealed = parts.map((part) => [part, this.seal.insights[part].sealNullable(session, insights[part])] as const);
    return Object.fromEntries(sealed.map(([part, bytes]) => [part, bytes && toBytes(bytes)]));
  }
}
