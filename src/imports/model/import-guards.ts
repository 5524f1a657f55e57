import { type CodeOf, codesOf, WORDS } from '../../words/words.js';

export const GUARD_NAMES = codesOf(WORDS.importGuard);
export type GuardName = CodeOf<'importGuard'>;

/** Exceeded if both bounds are. Null: there is none. */
type Threshold = { percent: number; people: number } | null;

/** How many people a plan affects in one way, and of how many. */
type GuardCount = Record<'count' | 'of', number>;

/** A count of the plan against its threshold. */
export interface Guard extends GuardCount {
  name: GuardName;
  threshold: Threshold;
  exceeded: boolean;
}

/** Counts for one kind of people, because half of the clients is too many, no matter how many providers there are. */
export interface PlanCounts {
  people: number;
  deletes: number;
  /** Deletions that the files ask for explicitly, or of accounts that are linked only by email. */
  confirmedDeletes: number;
  providerRemovals: number;
  creates: number;
  /** Creates of people who exist under another id, with the same email or profile. */
  doubled: number;
}

/** More than two people and a tenth of all creates: namesakes are rarer. */
const DOUBLED: Threshold = { percent: 10, people: 2 };

/** Reads `10%,5` or `unlimited`, as validated by the environment. */
export function parseThreshold(text: string): Threshold {
  const match = /^([\d.]+)%,(\d+)$/.exec(text);
  return match ? { percent: Number(match[1]), people: Number(match[2]) } : null;
}

/**
 * Compares the counts of a plan with the thresholds. If several kinds of people are affected, the one with the largest
 * share is shown.
 *
 * @param otherIdColumn people known under ids of another column than that of the files; 0 if it is the same column
 */
export function guardsOf(
  counts: readonly PlanCounts[],
  thresholds: { deletes: Threshold; providerRemovals: Threshold },
  otherIdColumn: number,
): Guard[] {
  const largest = (name: GuardName, threshold: Threshold, countOf: (kind: PlanCounts) => GuardCount): Guard => {
    const exceeds = ({ count, of }: GuardCount) =>
      threshold !== null && count > threshold.people && count * 100 > of * threshold.percent;
    const kinds = counts.map(countOf).sort((left, right) => share(right) - share(left));
    const shown = kinds.find(exceeds) ?? kinds[0] ?? { count: 0, of: 0 };
    return { name, ...shown, threshold, exceeded: exceeds(shown) };
  };
  const deletes = largest('deletes', thresholds.deletes, ({ deletes: count, people: of }) => ({ count, of }));
  const mustConfirm = counts.some(({ confirmedDeletes }) => confirmedDeletes > 0);
  return [
    { ...deletes, exceeded: deletes.exceeded || mustConfirm },
    largest('providerRemovals', thresholds.providerRemovals, ({ providerRemovals: count, people: of }) => ({
      count,
      of,
    })),
    { name: 'idColumn', count: otherIdColumn, of: otherIdColumn, threshold: null, exceeded: otherIdColumn > 0 },
    largest('looksDoubled', DOUBLED, ({ doubled: count, creates: of }) => ({ count, of })),
  ];
}

/** The share is 0 if there is no one. */
function share({ count, of }: GuardCount): number {
  return count === 0 ? 0 : count / of;
}

/** The exceeded guards that are not overridden. */
export function exceeded(guards: readonly Guard[], overrides: readonly string[]): Guard[] {
  return guards.filter((guard) => guard.exceeded && !overrides.includes(guard.name));
}
