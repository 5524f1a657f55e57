/**
 * 2³² times the golden ratio's fraction: multiples of it fall evenly into the range of 32 bits, however few there are,
 * and each next one into the widest gap (Knuth, The Art of Computer Programming 3, §6.4, multiplicative hashing).
 */
const STEP = 2_654_435_769;
const RANGE = 2 ** 32;

/**
 * Where a row stands in an order that knows nothing of the file's, in which the people of an import go. Files are sorted,
 * by date of admission, say: those who go first must not all be old or all be new, since the rest is estimated by them.
 *
 * @param rowNo from 1, below 2³²
 */
export function shuffledPlace(rowNo: number): number {
  return Math.imul(rowNo, STEP) >>> 0; // exact, where the product is beyond what a number holds
}

/**
 * The row numbers from 1 to the last in that order, without sorting them: of the multiples of one step, placed on a
 * circle, the next one is found by one of three differences (the three-gap theorem, V. T. Sós 1958).
 */
export function* shuffledRows(last: number): Generator<number> {
  const { first, final } = ends(last);
  let row = 0;
  for (let count = 0; count < last; count++) {
    if (row + first <= last) row += first;
    else if (row >= final) row -= final;
    else row += first - final;
    yield row;
  }
}

/** The rows with the lowest and the highest place. */
function ends(last: number): { first: number; final: number } {
  let [first, lowest, final, highest] = [0, RANGE, 0, -1];
  for (let row = 1; row <= last; row++) {
    const place = shuffledPlace(row);
    if (place < lowest) [first, lowest] = [row, place];
    if (place > highest) [final, highest] = [row, place];
  }
  return { first, final };
}
