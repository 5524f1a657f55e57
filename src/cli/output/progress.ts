import { duration } from './duration.js';

/** How far something is. */
export interface Progress {
  done: number;
  total: number;
  /** What is counted, in the plural. */
  noun: string;
  /** More, such as the calls made. */
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
 * Progress as one line with a bar that fills what the words leave; without a bar where none fits.
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

/** Milliseconds between two lines where no terminal shows a line that changes. */
const PLAIN_EVERY_MS = 5_000;

/** Where progress is written. */
export interface Terminal {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

/** One line that changes on a terminal; in a file or a pipe, now and then a line of its own. */
export class LiveLine {
  private shown = '';
  private shownAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly terminal: Terminal,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** Shows how far it is. */
  show(progress: Progress): void {
    if (this.terminal.isTTY) this.replace(progressLine(progress, this.terminal.columns || 80));
    else this.append(progress);
  }

  /** Writes a line of its own. */
  say(text: string): void {
    this.end();
    this.terminal.write(`${text}\n`);
  }

  /** Leaves the last state on a terminal and goes to the next line. */
  end(): void {
    if (this.terminal.isTTY && this.shown !== '') this.terminal.write('\n');
    this.shown = '';
  }

  private append(progress: Progress): void {
    const words = progressWords(progress);
    if (words === this.shown || this.nowMs() - this.shownAt < PLAIN_EVERY_MS) return;
    this.shownAt = this.nowMs();
    this.shown = words;
    this.terminal.write(`${words}\n`);
  }

  private replace(line: string): void {
    if (line === this.shown) return;
    this.shown = line;
    this.terminal.write(`\r\u001b[2K${line}`);
  }
}

/** How far a refresh is, and how long the rest takes at the pace so far. @param pending grows with events meanwhile */
export function refreshProgress(total: number, pending: number, elapsedMs: number): Progress {
  const done = Math.min(total, Math.max(0, total - pending));
  const etaSeconds = done === 0 ? null : (elapsedMs / 1000 / done) * (total - done);
  return { done, total, noun: 'sessions', etaSeconds };
}
