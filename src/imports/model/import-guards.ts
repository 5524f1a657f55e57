/** What an import may do to many people only with an override. */
const GUARD_NAMES = ['deletes', 'providerRemovals'] as const;
export type GuardName = (typeof GUARD_NAMES)[number];

/** A threshold is passed when both bounds are; null: there is none. */
type Threshold = { percent: number; people: number } | null;

/** How many people a plan touches in one way, of how many there are. */
type GuardCount = Record<'count' | 'of', number>;

/** A count against its threshold. */
export interface Guard extends GuardCount {
  name: GuardName;
  threshold: Threshold;
  exceeded: boolean;
  /** Rejected rows of a snapshot that do not say whom they name: any of those to be deleted may be meant. */
  nameless?: number;
}

/** What a plan does to one kind of person: half of the clients is too many, however many providers there are. */
export type PlanCounts = Record<GuardName | 'people', number>;

/** Reads `10%,5` or `unlimited`, as validated by the environment. */
export function parseThreshold(text: string): Threshold {
  const match = /^([\d.]+)%,(\d+)$/.exec(text);
  return match ? { percent: Number(match[1]), people: Number(match[2]) } : null;
}

/**
 * Holds counts against thresholds: more than the share, and more than the number, is too many. Of several kinds the one
 * with the largest share is shown.
 *
 * @param nameless rejected rows that do not say whom they name
 */
export function guardsOf(
  counts: readonly PlanCounts[],
  nameless: number,
  thresholds: Record<GuardName, Threshold>,
): Guard[] {
  return GUARD_NAMES.map((name) => {
    const threshold = thresholds[name];
    const exceeds = ({ count, of }: GuardCount) =>
      threshold !== null && count > threshold.people && count * 100 > of * threshold.percent;
    const kinds = counts.map((kind) => ({ count: kind[name], of: kind.people }));
    kinds.sort((left, right) => share(right) - share(left));
    const shown = kinds.find(exceeds) ?? kinds[0] ?? { count: 0, of: 0 };
    const guard = { name, ...shown, threshold, exceeded: exceeds(shown) };
    const mayBeMeant = name === 'deletes' && shown.count > 0 && nameless > 0;
    return mayBeMeant ? { ...guard, nameless, exceeded: threshold !== null } : guard;
  });
}

/** Of a kind of which nobody is there the share of none is none. */
function share({ count, of }: GuardCount): number {
  return count === 0 ? 0 : count / of;
}

/** The exceeded guards that are not overridden. */
export function exceeded(guards: readonly Guard[], overrides: readonly string[]): Guard[] {
  return guards.filter((guard) => guard.exceeded && !overrides.includes(guard.name));
}
