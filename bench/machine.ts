import { median } from './bench-row.js';

const ADDITIONS = 300_000_000;

/** Seconds that the additions took on the machine for which rates are stated. */
const STATED_FOR_SECONDS = 0.3;

/** Seconds that 300 million additions take on one core, in compiled JavaScript. */
export function additionSeconds(): number {
  const times = Array.from({ length: 5 }, () => {
    const begun = performance.now();
    add(ADDITIONS);
    return (performance.now() - begun) / 1_000;
  });
  return median(times);
}

/** What a stated rate is on this machine. @param seconds that the additions took */
export function inProportion(rate: number, seconds: number): number {
  return (rate * STATED_FOR_SECONDS) / seconds;
}

function add(count: number): number {
  let sum = 0;
  for (let at = 0; at < count; at += 1) sum += at;
  return sum;
}
