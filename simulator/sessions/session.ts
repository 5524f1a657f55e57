import type { Session, SessionDocument } from '../../src/platform/contract/session-answer.js';
import type { CLIENT_PRONOUNS, RECORDING_CONTENTS, SessionState } from '../../src/platform/contract/wire-types.js';

/** What a session is made from; it never changes its kind. */
export type SimulatedInput =
  | { kind: 'text'; text: string }
  | { kind: 'recording'; urls: string[]; content: (typeof RECORDING_CONTENTS)[number] };

/** What a create request asked for, once it was found valid. */
export interface NewSession {
  providerUserId: string;
  clientUserIds: string[];
  clientPronouns?: (typeof CLIENT_PRONOUNS)[number];
  noteTemplateIds: string[];
  input: SimulatedInput;
  /** ISO 8601. */
  date: string;
  partnerAppointmentId?: string;
  externalTreatmentPlan?: string;
}

/** What happens to a session next: its first run, or the making anew of some documents. */
type SessionStep = 'start' | 'make-notes' | 'complete' | 'remake-notes';

/** A therapy session as the platform holds it. */
export interface SimulatedSession extends NewSession {
  sessionId: string;
  processingId: string;
  /** ISO 8601. */
  createdAt: string;
  state: SessionState;
  error?: NonNullable<Session['error']>;
  /** The final word on AI notes; what the first events say of it is provisional. */
  aiNotes: boolean;
  /** Null: nothing more will happen by itself. */
  nextStep: SessionStep | null;
  /** Templates whose documents the next making of notes makes. */
  wantedTemplateIds: string[];
  /** Generations of notes so far. */
  generation: number;
  /** By template. */
  documents: Map<string, SessionDocument>;
  /** Speaker label to user UUID. */
  speakerMapping: Record<string, string>;
  /** The first run ended well once: insights are there from then on. */
  completed: boolean;
  /** Ordered through the admin API. */
  willFail: boolean;
  transcriptDeleted: boolean;
  editedByHand: boolean;
  /** Look-ups so far, of itself and of its processing id. */
  lookUps: number;
  processingLookUps: number;
}
