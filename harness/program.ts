import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { ProgramOutput } from './program-output.js';
import { until } from './until.js';

/** A running process. */
export interface Program {
  readonly pid: number;
  /** Everything printed so far, on both streams; of a program with `keeps`, the end of it. */
  output(): string;
  /** Bytes printed so far, on both streams. */
  printedBytes(): number;
  /** Resolves to the first match of `pattern` in the output; rejects if the program ends first. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Sends a signal and resolves to the exit code; null if the signal killed the process. */
  kill(signal?: NodeJS.Signals): Promise<number | null>;
  /** Sends a signal without waiting, such as SIGSTOP or SIGCONT. */
  signal(signal: NodeJS.Signals): void;
  /** Resolves to the exit code when the process ends. */
  ended(): Promise<number | null>;
  send(line: string): void;
}

/** The options for starting a program. */
export interface ProgramOptions {
  /** Relative to the project, such as `dist/src/main.js`. */
  readonly file: string;
  readonly args?: readonly string[];
  /** Options of Node, before the file. */
  readonly nodeArgs?: readonly string[];
  /** Its whole environment, except for PATH, HOME and TMPDIR. */
  readonly env?: Record<string, string | undefined>;
  /** The output of the program when it is ready. Without it, `start` does not wait. */
  readonly ready?: RegExp;
  /** Minimum characters of its output that are kept, for a program that runs for hours. Defaults to all. */
  readonly keeps?: number;
}

const LAST_LINES = 40;

/** Starts programs and kills those that still run. */
export class Programs {
  private readonly children = new Set<ChildProcess>();

  /** @throws Error with the latest output if the program ends before it is ready */
  async start({ file, args = [], nodeArgs = [], env, ready, keeps }: ProgramOptions): Promise<Program> {
    const { PATH, HOME, TMPDIR } = process.env;
    const child = spawn(process.execPath, ['--enable-source-maps', ...nodeArgs, path.resolve(file), ...args], {
      env: { PATH, HOME, TMPDIR, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.children.add(child);
    const program = follow(child, file, keeps);
    void program.ended().then(() => this.children.delete(child));
    if (ready) await program.printed(ready);
    return program;
  }

  async killAll(): Promise<void> {
    for (const child of this.children) child.kill('SIGKILL');
    await until('every program has ended', () => [...this.children].every(hasEnded));
  }
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

function follow(child: ChildProcess, file: string, keeps?: number): Program {
  const output = new ProgramOutput(keeps);
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output.add(chunk);
    });
  }
  child.stdin?.on('error', () => {}); // the program ended before it read its input
  // The latest output may arrive after the exit.
  let isClosed = false;
  const closed = new Promise<number | null>((resolve) =>
    child.once('close', (code) => {
      isClosed = true;
      resolve(code);
    }),
  );
  return {
    pid: child.pid ?? 0,
    output: () => output.text,
    printedBytes: () => output.bytes,
    async printed(pattern) {
      try {
        return await until(`${file} prints ${pattern}`, () => {
          const match = pattern.exec(output.text);
          if (!match && isClosed) throw new Error(`${file} ended before it printed ${pattern}`);
          return match;
        });
      } catch (error) {
        const tail = output.text.split('\n').slice(-LAST_LINES).join('\n');
        throw new Error(`${(error as Error).message}. Latest output:\n${tail}`);
      }
    },
    kill(signal = 'SIGKILL') {
      child.kill(signal);
      return closed;
    },
    signal: (signal) => {
      child.kill(signal);
    },
    ended: () => closed,
    send: (line) => {
      child.stdin?.write(`${line}\n`);
    },
  };
}
