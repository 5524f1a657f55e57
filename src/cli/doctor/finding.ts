/** What one check came to. */
export interface Finding {
  /** `unknown`: could not be judged, and nothing is wrong for that alone. */
  state: 'ok' | 'faulty' | 'unknown';
  what: string;
  /** Lines that say what to do. */
  advice?: string[];
}

/** Checks by their names, in the order in which they are made. */
export type Checks = Record<string, () => Promise<Finding> | Finding>;

const MARKS = { ok: '✓', faulty: '✗', unknown: '–' };

/** A finding as it is printed, its advice below it. */
export function findingLines(name: string, { state, what, advice = [] }: Finding): string {
  return [`${MARKS[state]} ${name.padEnd(10)} ${what}`, ...advice.map((line) => `             ${line}`)].join('\n');
}

/** An error's message as a finding. */
export function faultOf(error: unknown): Finding {
  const [what = 'it failed without a reason', ...advice] = (error instanceof Error ? error.message : '').split('\n');
  return { state: 'faulty', what, advice: advice.map((line) => line.trim()) };
}
