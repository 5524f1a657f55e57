import { Injectable } from '@nestjs/common';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { SealedColumn, Vault } from '../../vault/vault.js';
import type { NoteResponse } from './session-view.js';

/** The sealed parts of a session's insights. */
export const INSIGHT_PARTS = ['transcript', 'topics', 'namedEntities', 'analytics'] as const;
export type InsightPart = (typeof INSIGHT_PARTS)[number];

/** The row of a document's notes, in document_revisions. */
export const revisionKey = (document: string, revision: number): string => `${document}/${revision}`;

/** The sealed columns of sessions, and keyed fingerprints of what is compared. */
@Injectable()
export class SessionSeal {
  readonly notes: SealedColumn<NoteResponse[]>;
  readonly insights: Record<InsightPart, SealedColumn<unknown>>;
  readonly errorMessage: SealedColumn<string>;
  readonly request: SealedColumn<CreateTherapySessionRequest>;
  readonly processingAnswer: SealedColumn<unknown>;
  readonly notice: SealedColumn<unknown>;

  constructor(private readonly vault: Vault) {
    const insight = (part: InsightPart) => {
      const column = part === 'namedEntities' ? 'named_entities' : part; // as the database has it
      return [part, new SealedColumn(vault, 'session_insights', column)];
    };
    this.notes = new SealedColumn(vault, 'document_revisions', 'notes');
    this.insights = Object.fromEntries(INSIGHT_PARTS.map(insight)) as SessionSeal['insights'];
    this.errorMessage = new SealedColumn(vault, 'sessions', 'error_message');
    this.request = new SealedColumn(vault, 'session_requests', 'body');
    this.processingAnswer = new SealedColumn(vault, 'processing_sessions', 'answer');
    this.notice = new SealedColumn(vault, 'processing_notices', 'payload');
  }

  /** Hex; equal notes have equal fingerprints. */
  fingerprintNotes(notes: NoteResponse[]): string {
    const inOrder = notes.map((line) => [line.category, line.categoryName, line.text, line.nestingLevel]);
    return this.vault.fingerprint('notes', JSON.stringify(inOrder)).toString('hex');
  }

  fingerprintInsights(values: unknown): Buffer {
    return this.vault.fingerprint('insights', JSON.stringify(values));
  }
}
