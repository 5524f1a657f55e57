import type { Ending } from '../../platform/pauses/pause-rule.js';

/** What a readable 2xx says. */
export type Said = { kind: 'absent' | 'applied' | 'deleted' } | { kind: 'exists' | 'created'; userId: string };

/** The end of an attempt: for the rules, for the log, and the texts to store. */
export interface CallResult extends Ending {
  said: Said | null;
  durationMs: number;
  /** A short cause of a failure, never a value that was sent or received. */
  reason: string | null;
  /** Shown instead of the code that follows from the answer. */
  errorCode?: 'unreadable' | 'not-configured';
  /** The message of the platform, which may contain personal data. */
  errorText?: string | undefined;
  inviteUrl?: string | undefined;
}

/** The result of a call that was not sent, because it would have been too late. */
export const NOT_SENT: CallResult = { kind: 'held', status: null, said: null, durationMs: 0, reason: 'late' };

/** The result if the person's data cannot be decrypted. */
export const UNREADABLE: CallResult = {
  ...NOT_SENT,
  kind: 'unreadable',
  reason: 'unreadable',
  errorCode: 'unreadable',
};
