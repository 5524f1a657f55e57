import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { until } from './until.js';

/** A process of its own. */
export interface Program {
  readonly pid: number;
  /** Everything it printed so far, on both streams. */
  output(): string;
  /** What `pattern` matches in the output, as soon as it does; fails when the program ends first. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves when it has ended, to its exit code (null: a signal killed it). */
  kill(signal?: NodeJS.Signals): Promise<number | null>;
  /** Sends a signal and waits for nothing, such as SIGSTOP and SIGCONT. */
  signal(signal: NodeJS.Signals): void;
  /** The exit code, when it ends by itself. */
  ended(): Promise<number | null>;
  send(line: string): void;
}

/** What is to be started. */
export interface ProgramOptions {
  /** Relative to the project, such as `dist/src/main.js`. */
  readonly file: string;
  readonly args?: readonly string[];
  /** For Node itself, before the file. */
  readonly nodeArgs?: readonly string[];
  /** Its whole environment, but for PATH, HOME and TMPDIR. */
  readonly env?: Record<string, string | undefined>;
  /** What it prints when it is ready; without it the program counts as ready at once. */
  readonly ready?: RegExp;
  /** Where it runs, if not in the project's folder. */
  readonly cwd?: string;
  /** Who runs it, if not whoever runs this; only root can choose. */
  readonly user?: SystemUser;
}

/** A user of the system, by the numbers of himself and of his group. */
export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

const LAST_LINES = 40;

/** Starts programs, and ends whatever of them still runs. */
export class Programs {
  private readonly children = new Set<ChildProcess>();

  /** @throws Error with the last it printed, when it ends before it is ready */
  async start({ file, args = [], nodeArgs = [], env, ready, cwd, user }: ProgramOptions): Promise<Program> {
    const { PATH, HOME, TMPDIR } = process.env;
    const child = spawn(process.execPath, ['--enable-source-maps', ...nodeArgs, path.resolve(file), ...args], {
      env: { PATH, HOME, TMPDIR, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      cwd,
      ...user,
    });
    this.children.add(child);
    const program = follow(child, file);
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

function follow(child: ChildProcess, file: string): Program {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  child.stdin?.on('error', () => {}); // it ended before it read
  // What it printed last may be read after it has ended.
  let isClosed = false;
  const closed = new Promise<number | null>((resolve) =>
    child.once('close', (code) => {
      isClosed = true;
      resolve(code);
    }),
  );
  return {
    pid: child.pid ?? 0,
    output: () => text,
    async printed(pattern) {
      try {
        return await until(`${file} prints ${pattern}`, () => {
          const match = pattern.exec(text);
          if (!match && isClosed) throw new Error(`${file} ended before it printed ${pattern}`);
          return match;
        });
      } catch (error) {
        const tail = text.split('\n').slice(-LAST_LINES).join('\n');
        throw new Error(`${(error as Error).message}. The last it printed:\n${tail}`);
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
