/** What a session's row seals as one value: when the session was, and the platform's words about a failure. */
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

/** Codes of errors that hold no words of the platform's own choice. */
const PLAIN_CODES = ['low-content-transcript', 'platform-rejected', 'abandoned'];

/** The code of an error for what is stored plain, and for who may not read clinical text: the platform's own are open. */
export function plainCode(code: string): string {
  return PLAIN_CODES.includes(code) ? code : 'platform-error';
}

/** Facts without what the platform said of a failure. */
export function withoutWords(facts: SessionFacts): SessionFacts {
  const { error } = facts;
  return { ...facts, error: error && { code: plainCode(error.code), message: '' } };
}
