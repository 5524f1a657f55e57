import { duration } from './duration.js';

/** How far something is. */
export interface Progress {
  done: number;
  total: number;
  /** What is counted, in the plural. */
  noun: string;
  /** What else is said, such as the calls made. */
  note?: string;
  /** Seconds that are left; null: not known. */
  etaSeconds: number | null;
  /** Why it is not known. */
  etaUnknown?: string;
}

const WIDEST_BAR = 32;
const NARROWEST_BAR = 8;

/** The share that is done, 0..1; nothing to do is all done. */
function share({ done, total }: Progress): number {
  return total === 0 ? 1 : Math.min(1, Math.max(0, done / total));
}

/** Progress in words: `12 of 42 rows · 26 calls · about 11 s left`. */
export function progressWords(progress: Progress): string {
  const { done, total, noun, note } = progress;
  const left = done >= total ? [] : timeLeft(progress);
  return [`${done} of ${total} ${noun}`, ...(note ? [note] : []), ...left].join(' · ');
}

function timeLeft({ etaSeconds, etaUnknown }: Progress): string[] {
  if (etaSeconds !== null) return [`about ${duration(etaSeconds)} left`];
  return etaUnknown === undefined ? [] : [`time left not known: ${etaUnknown}`];
}

/**
 * Progress as one line with a bar that fills what the words leave; without a bar where there is no room for one.
 *
 * @param columns the terminal's width in characters
 */
export function progressLine(progress: Progress, columns: number): string {
  const words = progressWords(progress);
  const width = Math.min(WIDEST_BAR, columns - words.length - 9);
  if (width < NARROWEST_BAR) return words.slice(0, Math.max(0, columns - 1));
  const filled = Math.floor(share(progress) * width);
  const percent = `${Math.floor(share(progress) * 100)}%`.padStart(4);
  return `${'█'.repeat(filled)}${'░'.repeat(width - filled)} ${percent}  ${words}`;
}
