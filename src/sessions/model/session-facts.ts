/** Encrypted together in a session's row: the session's times, and the platform's error message. */
export interface SessionFacts {
  date: string | null;
  sessionCreatedAt: string | null;
  /** Whole milliseconds, like the following. */
  sessionDurationMs: string | null;
  recordingDurationMs: string | null;
  error: { code: string; message: string } | null;
}

/** The facts of a session whose column is null. */
export const NO_FACTS: SessionFacts = {
  date: null,
  sessionCreatedAt: null,
  sessionDurationMs: null,
  recordingDurationMs: null,
  error: null,
};

/** Error codes that are not free text of the platform. */
const PLAIN_CODES = ['low-content-transcript', 'platform-rejected', 'abandoned'];

/** An error's code for plain storage and answers; `platform-error` for other codes of the platform. */
export function plainCode(code: string): string {
  return PLAIN_CODES.includes(code) ? code : 'platform-error';
}

/** An error with its plain code. Another code of the platform becomes part of the message. */
export function shownError({ code, message }: { code: string; message: string }): { code: string; message: string } {
  const plain = plainCode(code);
  return { code: plain, message: plain === code ? message : [code, message].filter(Boolean).join(': ') };
}

/** Facts without the platform's error message. */
export function withoutMessage(facts: SessionFacts): SessionFacts {
  const { error } = facts;
  return { ...facts, error: error && { code: plainCode(error.code), message: '' } };
}
