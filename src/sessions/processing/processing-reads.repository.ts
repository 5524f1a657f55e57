import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import { SessionSeal } from '../model/session-seal.js';
import type { ProcessingNoticeResponse, ProcessingSessionResponse } from './processing-view.js';

/** What the Processing API answered, opened for a reader. */
@Injectable()
export class ProcessingReadsRepository {
  constructor(
    private readonly database: Database,
    private readonly seal: SessionSeal,
  ) {}

  /** @throws {Problem} 404 `unknown-processing-session` */
  async session(processingId: string): Promise<ProcessingSessionResponse> {
    const { rows } = await this.database.pool.query<ProcessingSessionResponse & { answer: Buffer | null }>(
      `SELECT p.processing_id AS "processingId", p.session, s.session_id AS "sessionId", p.answer, p.fault,
         p.updated_at AS "updatedAt"
       FROM processing_sessions p LEFT JOIN sessions s ON s.id = p.session WHERE p.processing_id = $1`,
      [processingId],
    );
    const [row] = rows;
    if (!row) {
      const detail = 'No processing session with this id is known here.';
      throw new Problem(404, 'unknown-processing-session', detail);
    }
    return { ...row, answer: this.seal.processingAnswer.open(processingId, row.answer) };
  }

  /** @throws {Problem} 404 `unknown-processing-notice` */
  async notice(deliveryId: string): Promise<ProcessingNoticeResponse> {
    const { rows } = await this.database.pool.query<ProcessingNoticeResponse & { body: Buffer }>(
      `SELECT delivery_id AS "deliveryId", processing_id AS "processingId", session_id AS "sessionId", payload AS body,
         received_at AS "receivedAt"
       FROM processing_notices WHERE delivery_id = $1`,
      [deliveryId],
    );
    const [row] = rows;
    if (!row) {
      const detail = 'No such event is kept here; it never came, or is older than is kept.';
      throw new Problem(404, 'unknown-processing-notice', detail);
    }
    return { ...row, body: this.seal.notice.open(deliveryId, row.body) };
  }
}
