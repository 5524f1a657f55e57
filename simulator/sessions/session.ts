import type { Session, SessionDocument } from '../../src/platform/contract/session-answer.js';
import type { CLIENT_PRONOUNS, RECORDING_CONTENTS, SessionState } from '../../src/platform/contract/wire-types.js';

/** The input of a session; its kind never changes. */
export type SimulatedInput =
  | { kind: 'text'; text: string }
  | { kind: 'recording'; urls: string[]; content: (typeof RECORDING_CONTENTS)[number] };

/** A valid create request. */
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

/** The next step of a session: of its first run, or of a regeneration of documents. */
type SessionStep = 'start' | 'make-notes' | 'complete' | 'remake-notes';

/** A therapy session on the platform. */
export interface SimulatedSession extends NewSession {
  sessionId: string;
  processingId: string;
  /** ISO 8601. */
  createdAt: string;
  state: SessionState;
  error?: NonNullable<Session['error']>;
  /** True if the session finally has AI notes; the value in the first events is provisional. */
  aiNotes: boolean;
  /** Null if nothing more happens automatically. */
  nextStep: SessionStep | null;
  /** Templates of the documents that the next generation creates. */
  wantedTemplateIds: string[];
  /** Number of generations of notes so far. */
  generation: number;
  /** Documents by template. */
  documents: Map<string, SessionDocument>;
  /** User UUIDs by speaker label. */
  speakerMapping: Record<string, string>;
  /** True once the first run succeeded: from then on, there are insights. */
  completed: boolean;
  /** Set by the admin API. */
  willFail: boolean;
  transcriptDeleted: boolean;
  editedByHand: boolean;
  /** Lookups so far, by its id and by its processing id. */
  lookUps: number;
  processingLookUps: number;
}
