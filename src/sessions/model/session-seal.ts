import { Injectable } from '@nestjs/common';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { Vault } from '../../vault/vault.js';
import type { NoteLine } from './note-documents.js';

/** The sealed parts of a session's insights. */
export const INSIGHT_PARTS = ['transcript', 'topics', 'namedEntities', 'analytics'] as const;
export type InsightPart = (typeof INSIGHT_PARTS)[number];

/** Seals the clinical texts of this room, each for the place where it stands, and fingerprints them. */
@Injectable()
export class SessionSeal {
  constructor(private readonly vault: Vault) {}

  sealNotes(document: string, revision: number, notes: NoteLine[]): Buffer {
    return this.vault.seal(notesPlace(document, revision), JSON.stringify(notes));
  }

  openNotes(document: string, revision: number, sealed: Uint8Array): NoteLine[] {
    return JSON.parse(this.vault.open(notesPlace(document, revision), sealed)) as NoteLine[];
  }

  /** Hex; equal notes have equal fingerprints. */
  fingerprintNotes(notes: NoteLine[]): string {
    const inOrder = notes.map((line) => [line.category, line.categoryName, line.text, line.nestingLevel]);
    return this.vault.fingerprint('notes', JSON.stringify(inOrder)).toString('hex');
  }

  sealInsight(session: string, part: InsightPart, value: unknown): Buffer | null {
    return value == null ? null : this.vault.seal(insightPlace(session, part), JSON.stringify(value));
  }

  openInsight(session: string, part: InsightPart, sealed: Uint8Array | null): unknown {
    return sealed === null ? null : JSON.parse(this.vault.open(insightPlace(session, part), sealed));
  }

  fingerprintInsights(values: unknown): Buffer {
    return this.vault.fingerprint('insights', JSON.stringify(values));
  }

  sealErrorMessage(session: string, message: string | null): Buffer | null {
    return message === null ? null : this.vault.seal(errorPlace(session), message);
  }

  openErrorMessage(session: string, sealed: Buffer | null): string | null {
    return sealed === null ? null : this.vault.open(errorPlace(session), sealed);
  }

  sealProcessingAnswer(processingId: string, answer: unknown): Buffer {
    return this.vault.seal(processingPlace(processingId), JSON.stringify(answer ?? null));
  }

  openProcessingAnswer(processingId: string, sealed: Buffer | null): unknown {
    return sealed === null ? null : JSON.parse(this.vault.open(processingPlace(processingId), sealed));
  }

  sealRequest(session: string, body: CreateTherapySessionRequest): Buffer {
    return this.vault.seal(requestPlace(session), JSON.stringify(body));
  }

  openRequest(session: string, sealed: Buffer): CreateTherapySessionRequest {
    return JSON.parse(this.vault.open(requestPlace(session), sealed)) as CreateTherapySessionRequest;
  }

  sealNotice(deliveryId: string, payload: unknown): Buffer {
    return this.vault.seal(noticePlace(deliveryId), JSON.stringify(payload ?? null));
  }

  openNotice(deliveryId: string, sealed: Buffer): unknown {
    return JSON.parse(this.vault.open(noticePlace(deliveryId), sealed));
  }
}

function processingPlace(processingId: string) {
  return { table: 'processing_sessions', column: 'answer', row: processingId };
}

function noticePlace(deliveryId: string) {
  return { table: 'processing_notices', column: 'payload', row: deliveryId };
}

function notesPlace(document: string, revision: number) {
  return { table: 'document_revisions', column: 'notes', row: `${document}/${revision}` };
}

function insightPlace(session: string, part: InsightPart) {
  const column = part === 'namedEntities' ? 'named_entities' : part; // the place is named as the database has it
  return { table: 'session_insights', column, row: session };
}

function requestPlace(session: string) {
  return { table: 'session_requests', column: 'body', row: session };
}

function errorPlace(session: string) {
  return { table: 'sessions', column: 'error_message', row: session };
}
