import { FAULTS, PERSON_CODES, REVIEWS } from '../../words/person-words.js';
import type { Word } from '../../words/word.js';
import { codesOf } from '../../words/words.js';

export type Review = keyof typeof REVIEWS;
export type Fault = keyof typeof FAULTS;

/** The codes that last until an operator decides or the EHR writes. */
export const UNSETTLED_CODES = codesOf({ ...REVIEWS, ...FAULTS });

/** The states of these codes. */
export const UNSETTLED_STATES = ['needs-review', 'failed'] as const;

/** The code of a deletion that a legal hold defers. */
export const LEGAL_HOLD = 'legal-hold' satisfies keyof typeof PERSON_CODES;

/** The message for a code, without personal data. @param cause the operation of the newest call, and why it failed */
export function messageFor(code: string, cause: string | null = null): string {
  const words = PERSON_CODES as Partial<Record<string, Word>>;
  const message = words[code]?.hint ?? 'An unexpected state stops this person. See the trace.';
  return cause === null ? message : `${message} Cause: ${cause}.`;
}
