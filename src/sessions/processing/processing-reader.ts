import { Injectable } from '@nestjs/common';
import { Problem } from '../../http/problem/problem.js';
import { SessionSeal } from '../model/session-seal.js';
import { ProcessingReadsRepository } from './processing-reads.repository.js';
import type { ProcessingNoticeResponse, ProcessingSessionResponse } from './processing-view.js';

/** What the Processing API told, opened for whoever may read it. */
@Injectable()
export class ProcessingReader {
  constructor(
    private readonly reads: ProcessingReadsRepository,
    private readonly seal: SessionSeal,
  ) {}

  /** @throws {Problem} 404 `unknown-processing-session` */
  async session(processingId: string): Promise<ProcessingSessionResponse> {
    const row = await this.reads.findSession(processingId);
    if (!row) {
      const detail = 'No processing session with this id is known here.';
      throw new Problem(404, 'unknown-processing-session', detail);
    }
    return {
      processingId: row.processing_id,
      session: row.session,
      sessionId: row.session_id,
      answer: this.seal.openProcessingAnswer(row.processing_id, row.answer),
      fault: row.fault,
      updatedAt: row.updated_at,
    };
  }

  /** @throws {Problem} 404 `unknown-processing-notice` */
  async notice(deliveryId: string): Promise<ProcessingNoticeResponse> {
    const row = await this.reads.findNotice(deliveryId);
    if (!row) {
      const detail = 'No such event is kept here; it was never told, or is older than is kept.';
      throw new Problem(404, 'unknown-processing-notice', detail);
    }
    return {
      deliveryId: row.delivery_id,
      processingId: row.processing_id,
      sessionId: row.session_id,
      body: this.seal.openNotice(row.delivery_id, row.payload),
      receivedAt: row.received_at,
    };
  }
}
