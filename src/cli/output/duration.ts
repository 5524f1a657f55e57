/**
 * A span of time for people: `8 s`, `3 min 5 s`, `2 h 4 min`.
 *
 * @param seconds rounded to whole ones
 */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const [large, small, units] =
    whole < 3_600
      ? [Math.floor(whole / 60), whole % 60, ['min', 's']]
      : [Math.floor(whole / 3_600), Math.floor((whole % 3_600) / 60), ['h', 'min']];
  return `${large} ${units[0]}${small > 0 ? ` ${small} ${units[1]}` : ''}`;
}

/** A number of bytes for people: `812 B`, `3.1 KiB`, `2.0 GiB`. */
export function byteSize(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}

/** A count with its noun: `1 row`, `2 rows`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en-GB')} ${count === 1 ? noun : plural}`;
}
