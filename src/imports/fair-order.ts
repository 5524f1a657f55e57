/**
 * 2³² times the golden ratio's fraction: multiples of it fall evenly into the range of 32 bits, however few there are,
 * and each next one into the widest gap (Knuth, The Art of Computer Programming 3, §6.4, multiplicative hashing).
 */
const STEP = 2_654_435_769;
const RANGE = 2 ** 32;

/**
 * An order of rows that knows nothing of the file's, in which the people of an import go. Files are sorted, by date of
 * admission, say: whoever goes first must not all be old or all be new, for the rest is estimated by them.
 */
export const FAIR_ORDER = `(row_no::bigint * ${STEP}) % ${RANGE}`;

/** The same rule: where a row stands in that order. @param rowNo from 1, at most 3,000,000 */
export function fairPlace(rowNo: number): number {
  return (rowNo * STEP) % RANGE;
}
