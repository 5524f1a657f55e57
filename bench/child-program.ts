import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

/** A program in a separate process, so that it shares no event loop with the code that it measures. */
export interface ChildProgram {
  /** Its first message, when it was ready. */
  ready: unknown;
  /** Sends a message and returns the reply. */
  ask(message: object): Promise<unknown>;
  stop(): Promise<void>;
}

/**
 * Starts a compiled program that sends one message when it is ready.
 *
 * @param file relative to the compiled project, such as `bench/receiver-floor.js`
 * @throws {Error} when it ends before it is ready
 */
export async function startChild(file: string, env: Record<string, string>): Promise<ChildProgram> {
  const child = fork(path.resolve(__dirname, '..', file), [], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const ready = await answerOf(child, file);
  return {
    ready,
    ask: (message) => {
      const answer = answerOf(child, file);
      child.send(message);
      return answer;
    },
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function answerOf(child: ChildProcess, file: string): Promise<unknown> {
  const ended = new AbortController();
  const early = once(child, 'exit', { signal: ended.signal }).then(() => {
    throw new Error(`${file} ended before it replied. Its last lines are above.`);
  });
  try {
    return (await Promise.race([once(child, 'message'), early]))[0];
  } finally {
    early.catch(() => undefined);
    ended.abort();
  }
}
