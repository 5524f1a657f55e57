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

/** The form of a code. Another text may be a sentence of the platform, and so about a person. */
const CODE = /^[A-Za-z0-9._-]{1,64}$/;

/** An error's code for plain storage and answers: unchanged, or `platform-error` for a text that is no code. */
export function plainCode(code: string): string {
  return CODE.test(code) ? code : 'platform-error';
}

/** An error with its plain code. A text that is no code becomes part of the message. */
export function shownError({ code, message }: { code: string; message: string }): { code: string; message: string } {
  const plain = plainCode(code);
  return { code: plain, message: plain === code ? message : [code, message].filter(Boolean).join(': ') };
}

/** Facts without the platform's error message. */
export function withoutMessage(facts: SessionFacts): SessionFacts {
  const { error } = facts;
  return { ...facts, error: error && { code: plainCode(error.code), message: '' } };
}
