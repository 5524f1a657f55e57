import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';

/** A processing session, its answer sealed. */
export interface ReadProcessingSession {
  processing_id: string;
  session: string | null;
  session_id: string | null;
  answer: Buffer | null;
  fault: string | null;
  updated_at: Date;
}

/** An event whose payload the spec does not show, sealed. */
export interface ReadProcessingNotice {
  delivery_id: string;
  processing_id: string | null;
  session_id: string | null;
  payload: Buffer;
  received_at: Date;
}

/** What the Processing API told, as the EHR reads it. */
@Injectable()
export class ProcessingReadsRepository {
  constructor(private readonly database: Database) {}

  async findSession(processingId: string): Promise<ReadProcessingSession | undefined> {
    const { rows } = await this.database.pool.query<ReadProcessingSession>(
      `SELECT p.processing_id, p.session, s.session_id, p.answer, p.fault, p.updated_at
       FROM processing_sessions p LEFT JOIN sessions s ON s.id = p.session WHERE p.processing_id = $1`,
      [processingId],
    );
    return rows[0];
  }

  async findNotice(deliveryId: string): Promise<ReadProcessingNotice | undefined> {
    const { rows } = await this.database.pool.query<ReadProcessingNotice>(
      'SELECT * FROM processing_notices WHERE delivery_id = $1',
      [deliveryId],
    );
    return rows[0];
  }
}
