/** One line of the benchmark's table. */
export interface BenchRow {
  name: string;
  value: number;
  unit: string;
  /** To whatever the name says it is compared with. */
  ratio?: number;
  /** Such as `≥ 0.75`, for the ratio when there is one and else for the value. */
  target?: string;
  ok?: boolean;
}

/** The middle value; of an even number the lower of the two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
}

/** The value below which the given share of all lies. @param share in (0, 1] */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
