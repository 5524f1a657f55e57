import { Injectable } from '@nestjs/common';
import { Contract } from '../../platform/contract/contract.js';
import { readPointer } from '../../platform/contract/json-pointer.js';
import { SessionSeal } from '../model/session-seal.js';

/** What the platform answered about its processing ids. */
@Injectable()
export class ProcessingAnswers {
  constructor(
    private readonly seal: SessionSeal,
    private readonly contract: Contract,
  ) {}

  /**
   * An answer as it came; null until there is one. An answer names its session, so its row can't be given to another.
   *
   * @param sessionId the platform's id of the session that the row belongs to; null: to none
   * @throws {UnreadableValue} where it does not open, or names another session
   */
  open(row: { processingId: string; answer: Uint8Array | null }, sessionId: string | null): unknown {
    const { sessionId: place, session } = this.contract.operations.getProcessingSession.response;
    const pointer = place ?? (session === undefined ? undefined : `${session}/sessionId`);
    const isBound = (answer: unknown) =>
      sessionId === null || pointer === undefined || readPointer(answer, pointer) === sessionId;
    return this.seal.processingAnswer.open(row.processingId, row.answer, isBound);
  }
}
