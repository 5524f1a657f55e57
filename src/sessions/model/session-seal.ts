import { Injectable } from '@nestjs/common';
import { toBytes } from '../../database/prisma.service.js';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { Fingerprints } from '../../vault/fingerprints.js';
import { SealedColumn, type SealedPlace, Vault } from '../../vault/vault.js';
import { NO_FACTS, type SessionFacts } from './session-facts.js';
import type { NoteResponse } from './session-view.js';

/** The encrypted parts of a session's insights. */
export const INSIGHT_PARTS = ['transcript', 'topics', 'namedEntities', 'analytics'] as const;
export type InsightPart = (typeof INSIGHT_PARTS)[number];

/** The columns of `session_insights`. */
const INSIGHT_COLUMNS: Record<InsightPart, string> = {
  transcript: 'transcript',
  topics: 'topics',
  namedEntities: 'named_entities',
  analytics: 'analytics',
};

/** Identifies the notes of one revision: bound to the session, so that they cannot be moved to another. */
interface RevisionKey {
  session: string;
  document: string;
  revision: number;
}

/** The encrypted columns of sessions, and keyed fingerprints of notes and insights. */
@Injectable()
export class SessionSeal {
  readonly insights: Record<InsightPart, SealedColumn<unknown>>;
  private readonly facts: SealedColumn<SessionFacts>;
  readonly request: SealedColumn<CreateTherapySessionRequest>;
  readonly processingAnswer: SealedColumn<unknown>;

  constructor(
    private readonly vault: Vault,
    private readonly fingerprints: Fingerprints,
  ) {
    const insight = (part: InsightPart) => [part, new SealedColumn(vault, 'session_insights', INSIGHT_COLUMNS[part])];
    this.insights = Object.fromEntries(INSIGHT_PARTS.map(insight)) as SessionSeal['insights'];
    this.facts = new SealedColumn(vault, 'sessions', 'facts');
    this.request = new SealedColumn(vault, 'sessions', 'request');
    this.processingAnswer = new SealedColumn(vault, 'processing_sessions', 'answer');
  }

  sealFacts(id: string, facts: SessionFacts): Uint8Array<ArrayBuffer> {
    return toBytes(this.facts.seal(id, facts));
  }

  /** @throws {UnreadableValue} if the value was changed or moved; {MissingDataKey} if its key is missing */
  openFacts({ id, facts }: { id: string; facts: Uint8Array | null }): SessionFacts {
    return this.facts.open(id, facts) ?? NO_FACTS;
  }

  sealNotes(key: RevisionKey, notes: NoteResponse[]): Buffer {
    return this.vault.seal(notesPlace(key), JSON.stringify(notes));
  }

  openNotes(key: RevisionKey, sealed: Uint8Array): NoteResponse[] {
    return JSON.parse(this.vault.open(notesPlace(key), sealed)) as NoteResponse[];
  }

  /** The fingerprint of notes. */
  fingerprintNotes(notes: NoteResponse[]): Buffer {
    const inOrder = notes.map((line) => [line.category, line.categoryName, line.text, line.nestingLevel]);
    return this.fingerprints.of('notes', JSON.stringify(inOrder));
  }

  /** The same for insights, as pairs of part and value. */
  fingerprintInsights(values: readonly (readonly [InsightPart, unknown])[]): Buffer {
    return this.fingerprints.of('insights', JSON.stringify(values));
  }
}

function notesPlace({ session, document, revision }: RevisionKey): SealedPlace {
  return { table: 'document_revisions', column: 'notes', row: `${session}/${document}/${revision}` };
}
