/** The text that people see in place of a state or a code. Contains no personal data. */
export interface Word {
  /** In sentence case, without a full stop. */
  label: string;
  /** Sentences: what it means, and what to do. */
  hint?: string;
  /** The resolve action that is usually right. */
  action?: string;
  /** When that action is right, and what to do otherwise. */
  why?: string;
}

/** Checks the words of a vocabulary and keeps its codes as a type. */
export const vocabulary = <Code extends string>(words: Record<Code, Word>): Record<Code, Word> => words;

/** Words that need only a label. */
export const labels = <Code extends string>(texts: Record<Code, string>): Record<Code, Word> =>
  Object.fromEntries(Object.entries<string>(texts).map(([code, label]) => [code, { label }])) as Record<Code, Word>;
