import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { FetchedInsights } from '../model/answer-parts.js';
import { INSIGHT_PARTS, type InsightPart, SessionSeal } from '../model/session-seal.js';

/** Stores what the platform gained from a session's audio, sealed. */
@Injectable()
export class InsightsRepository {
  constructor(private readonly seal: SessionSeal) {}

  /**
   * Stores the parts that an answer speaks of; the session's row must be locked.
   *
   * @param session our id
   */
  async store(tx: PoolClient, session: string, insights: FetchedInsights, now: Date): Promise<void> {
    const parts = INSIGHT_PARTS.filter((part) => insights[part] !== undefined);
    if (parts.length === 0) return;
    const fingerprint = this.seal.fingerprintInsights(parts.map((part) => [part, insights[part]]));
    const { rowCount } = await tx.query('SELECT 1 FROM session_insights WHERE session = $1 AND fingerprint = $2', [
      session,
      fingerprint,
    ]);
    if (rowCount) return;
    const sealed = parts.map((part) => this.seal.sealInsight(session, part, insights[part]));
    const values = parts.map((_part, index) => `$${index + 4}`);
    await tx.query(
      `INSERT INTO session_insights (session, fingerprint, fetched_at, ${parts.join(', ')})
       VALUES ($1, $2, $3, ${values.join(', ')})
       ON CONFLICT (session) DO UPDATE SET fingerprint = excluded.fingerprint, fetched_at = excluded.fetched_at,
         ${parts.map((part) => `${part} = excluded.${part}`).join(', ')}`,
      [session, fingerprint, now, ...sealed],
    );
  }

  /** Gives what is known of one session to another that has nothing, sealed for its new place. @param from, to ours */
  async move(tx: PoolClient, from: string, to: string): Promise<void> {
    const { rows } = await tx.query<Record<InsightPart, Buffer | null> & { fingerprint: Buffer; fetched_at: Date }>(
      'DELETE FROM session_insights WHERE session = $1 RETURNING *',
      [from],
    );
    const [row] = rows;
    if (!row) return;
    const sealed = INSIGHT_PARTS.map((part) =>
      this.seal.sealInsight(to, part, this.seal.openInsight(from, part, row[part])),
    );
    await tx.query(
      `INSERT INTO session_insights (session, fingerprint, fetched_at, ${INSIGHT_PARTS.join(', ')})
       VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (session) DO NOTHING`,
      [to, row.fingerprint, row.fetched_at, ...sealed],
    );
  }
}
