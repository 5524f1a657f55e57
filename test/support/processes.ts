import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { until } from './until.js';

export interface Program {
  readonly pid: number;
  /** Everything it printed so far, on both streams. */
  output(): string;
  /** What `pattern` matches in the output, as soon as it does; fails when the program ends or the deadline passes. */
  printed(pattern: RegExp, deadlineMs?: number): Promise<RegExpExecArray>;
  /** Resolves when it has ended, after which its exit code is known (null: it was killed by a signal). */
  kill(signal?: NodeJS.Signals): Promise<number | null>;
  /** The exit code, when it ends by itself. */
  ended(): Promise<number | null>;
  send(line: string): void;
}

export interface ProgramOptions {
  /** Relative to the project, such as `dist/src/main.js`. */
  readonly file: string;
  readonly args?: string[];
  /** Its whole environment, but for PATH, HOME and TMPDIR. */
  readonly env?: Record<string, string | undefined>;
  /** What it prints when it is ready; without it the program counts as ready at once. */
  readonly ready?: RegExp;
  readonly deadlineMs?: number;
}

const root = path.resolve(__dirname, '../..');
const LAST_LINES = 40;

/** To be called once in a suite: the returned function starts programs, and whatever still runs dies with the suite. */
export function usePrograms(): (options: ProgramOptions) => Promise<Program> {
  const children = new Set<ChildProcess>();
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    await until('every program has ended', () => [...children].every(hasEnded));
  });
  return async (options) => {
    const { PATH, HOME, TMPDIR } = process.env;
    const child = spawn(
      process.execPath,
      ['--enable-source-maps', path.join(root, options.file), ...(options.args ?? [])],
      {
        cwd: root,
        env: { PATH, HOME, TMPDIR, ...options.env },
        stdio: ['pipe', 'pipe', 'pipe'],
      },
    );
    children.add(child);
    const program = follow(child, options.file);
    if (options.ready) await program.printed(options.ready, options.deadlineMs);
    return program;
  };
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

function follow(child: ChildProcess, file: string): Program {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  child.stdin?.on('error', () => {}); // it ended before it read
  const closed = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  return {
    pid: child.pid ?? 0,
    output: () => text,
    async printed(pattern, deadlineMs = 30_000) {
      try {
        return await until(
          `${file} prints ${pattern}`,
          () => {
            const match = pattern.exec(text);
            if (!match && hasEnded(child)) throw new Error(`${file} ended before it printed ${pattern}`);
            return match;
          },
          deadlineMs,
        );
      } catch (error) {
        const tail = text.split('\n').slice(-LAST_LINES).join('\n');
        throw new Error(`${(error as Error).message}. The last it printed:\n${tail}`);
      }
    },
    kill(signal = 'SIGKILL') {
      child.kill(signal);
      return closed;
    },
    ended: () => closed,
    send: (line) => {
      child.stdin?.write(`${line}\n`);
    },
  };
}
