/** The result of one check; each line of advice is something to do. `unknown` is not a fault. */
export interface Finding {
  state: 'ok' | 'faulty' | 'unknown';
  what: string;
  advice: string[];
}

export const ok = (what: string, ...advice: string[]): Finding => ({ state: 'ok', what, advice });
export const faulty = (what: string, ...advice: string[]): Finding => ({ state: 'faulty', what, advice });
export const unknown = (what: string, ...advice: string[]): Finding => ({ state: 'unknown', what, advice });

/** Checks by their names, in the order in which they are made. */
export type Checks = Record<string, () => Promise<Finding> | Finding>;

const MARKS = { ok: '✓', faulty: '✗', unknown: '–' };

/** A finding as it is printed, its advice below it. */
export function findingLines(name: string, { state, what, advice }: Finding): string {
  return [`${MARKS[state]} ${name.padEnd(10)} ${what}`, ...advice.map((line) => `             ${line}`)].join('\n');
}

/** An error's message as a finding. */
export function faultOf(error: unknown): Finding {
  const [what = 'it failed without a message', ...advice] = (error instanceof Error ? error.message : '').split('\n');
  return faulty(what, ...advice.map((line) => line.trim()));
}
