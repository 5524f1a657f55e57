import { bulkSlots, type CallLimit, creditMs, paceMs } from './pacing.js';

/** How calls went lately, and what the next bulk calls have to wait for; in milliseconds, moments from now on. */
export interface CallTempo {
  limit: CallLimit;
  /** From a call's grant to its answer, on average; 0 before the first answer. */
  latencyMs: number;
  /** Between two grants, as they came; null while there are too few. */
  achievedMs: number | null;
  /** Since the last grant; null: there was none. */
  sinceGrantMs: number | null;
  /** When the slots become free that are occupied, in ascending order. */
  freeInMs: readonly number[];
  /** When the even pace allows the next bulk call; may be past. */
  paceInMs: number;
  /** What is left of a 429's pause. */
  blockedMs: number;
}

/** Gaps between grants that make a pace measurable. */
const ENOUGH = 60;

/** Of so many gaps one is taken for a pause: after a 429, by an operator, or while the window is full. */
const PAUSE_ONE_IN = 75;

/** An achieved pace that is slower than the limit's by this factor has another reason than the limit. */
const SLOWER = 1.05;

/** Windows that are followed call by call; those after them are like the last of them. */
const WINDOWS = 3;

/**
 * The pace at which bulk calls were granted, pauses left out.
 *
 * @param grantedAt the latest grants in their order, in milliseconds of any clock
 * @returns milliseconds between two of them; null when there are too few
 */
export function achievedPaceMs(grantedAt: readonly number[]): number | null {
  const gaps = grantedAt.slice(1).map((at, before) => at - (grantedAt[before] ?? at));
  if (gaps.length < ENOUGH) return null;
  const kept = gaps.sort((left, right) => left - right).slice(0, -Math.ceil(gaps.length / PAUSE_ONE_IN));
  return kept.reduce((sum, gap) => sum + gap, 0) / kept.length;
}

/**
 * Milliseconds until so many more bulk calls were granted, without other load, by the rules that grant them (`earliest`,
 * `nextBulkAt`): the even pace with its credit, and a slot free, which an answered call occupies for one window more.
 */
export function grantedInMs(calls: number, tempo: CallTempo): number {
  const slots = bulkSlots(tempo.limit);
  const followed = Math.min(Math.ceil(calls), WINDOWS * slots);
  const at = follow(followed, slots, tempo);
  const last = at(followed);
  if (followed === 0 || calls <= followed) return last;
  return last + ((calls - followed) / slots) * (last - at(followed - slots));
}

/** Follows the grants one by one. @returns when the n-th is given, from 1 */
function follow(calls: number, slots: number, tempo: CallTempo): (nth: number) => number {
  const { limit, latencyMs, achievedMs, freeInMs, paceInMs, blockedMs } = tempo;
  const [pace, credit] = [paceMs(limit), creditMs(limit)];
  // Who lags by less than the credit is about to make it good, however slowly it went until now.
  const lagsForGood = paceInMs <= pace - credit;
  const gap = achievedMs !== null && lagsForGood && achievedMs > pace * SLOWER ? achievedMs : 0;
  const grants: number[] = [];
  const nth = (count: number) => grants[count - 1] ?? 0;
  let due = paceInMs;
  for (let count = 1; count <= calls; count++) {
    // The slot that must be free again: one that is occupied now, or one of those granted here.
    const before = freeInMs.length + count - slots;
    const freed =
      before <= freeInMs.length ? freeInMs[before - 1] : nth(before - freeInMs.length) + latencyMs + limit.windowMs;
    const granted = Math.max(due, blockedMs, freed ?? 0, count === 1 ? 0 : nth(count - 1) + gap);
    grants.push(granted);
    due = Math.max(due, granted - credit) + pace;
  }
  return nth;
}
