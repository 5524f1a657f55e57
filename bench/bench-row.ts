/** One line of the benchmark's table. */
export interface BenchRow {
  name: string;
  value: number;
  unit: string;
  /** Ratio to the value that the name compares it with. */
  ratio?: number;
  /** Target of the ratio, or of the value if there is no ratio, such as `≥ 0.75`. */
  target?: string;
  ok?: boolean;
}

/** The median; of an even number of values the lower middle one. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
}

/** The percentile of a share of all values. @param share in (0, 1] */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
