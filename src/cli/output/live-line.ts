import { type Progress, progressLine, progressWords } from './progress-bar.js';

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

  /** Says something on a line of its own. */
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
