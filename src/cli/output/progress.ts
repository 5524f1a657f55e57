import { durationRange } from './print.js';

/** The progress of some work. */
export interface Progress {
  done: number;
  total: number;
  /** The counted items, in the plural. */
  noun: string;
  /** An additional text, such as the calls made. */
  note?: string;
  /** Maximum seconds left; null if unknown; then `etaUnknown` may contain the reason. */
  etaSeconds: number | null;
  /** Minimum seconds left. Defaults to the maximum. */
  etaMinSeconds?: number | null;
  etaUnknown?: string;
}

const MAX_BAR_WIDTH = 32;
const MIN_BAR_WIDTH = 8;

/** How often to print a line if the output is not a terminal. */
const PLAIN_INTERVAL_MS = 5_000;

/** Progress in words: `12 of 42 rows · 26 calls · about 11 s left`. */
export function progressWords({ done, total, noun, note, etaSeconds, etaMinSeconds, etaUnknown }: Progress): string {
  const left =
    etaSeconds !== null
      ? `about ${durationRange(etaMinSeconds, etaSeconds)} left`
      : etaUnknown && `time left not known: ${etaUnknown}`;
  return [`${done} of ${total} ${noun}`, note, done < total && left].filter(Boolean).join(' · ');
}

/** Progress with a bar that fills the rest of the line; without a bar in a narrow terminal. */
export function progressLine(progress: Progress, columns: number): string {
  const words = progressWords(progress);
  const width = Math.min(MAX_BAR_WIDTH, columns - words.length - 9);
  if (width < MIN_BAR_WIDTH) return words.slice(0, Math.max(0, columns - 1));
  const share = progress.total === 0 ? 1 : Math.min(1, Math.max(0, progress.done / progress.total));
  const bar = '█'.repeat(Math.floor(share * width)).padEnd(width, '░');
  return `${bar} ${`${Math.floor(share * 100)}%`.padStart(4)}  ${words}`;
}

/** A line that is overwritten on a terminal; in a file or a pipe, a new line every few seconds. */
export class LiveLine {
  private shown = '';
  private shownAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly terminal: { isTTY?: boolean; columns?: number; write(text: string): unknown },
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  show(progress: Progress): void {
    const { isTTY, columns } = this.terminal;
    const line = isTTY ? progressLine(progress, columns || 80) : progressWords(progress);
    if (line === this.shown || (!isTTY && this.nowMs() - this.shownAt < PLAIN_INTERVAL_MS)) return;
    this.shown = line;
    this.shownAt = this.nowMs();
    this.terminal.write(isTTY ? `\r\u001b[2K${line}` : `${line}\n`);
  }

  /** Prints a separate line. */
  say(text: string): void {
    this.end();
    this.terminal.write(`${text}\n`);
  }

  /** Leaves the last state on a terminal and goes to the next line. */
  end(): void {
    if (this.terminal.isTTY && this.shown !== '') this.terminal.write('\n');
    this.shown = '';
  }
}
