import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CliFault } from '../src/cli/api/cli-fault.js';

const ROOT = path.resolve(__dirname, '../..');
const POLL_MS = 30;
/** Far longer than a slow machine needs. */
const START_MS = 180_000;
/** How long a program may take to stop before SIGKILL. */
export const STOP_MS = 20_000;
const LAST_LINES = 15;

/** A program that the demo has started. */
interface Program {
  /** Stops it, with SIGKILL if it takes too long, and waits until it has ended. Safe to call twice. */
  stop(): Promise<void>;
}

/** A program to start. */
export interface ProgramPlan {
  name: string;
  /** Relative to the project's compiled code, such as `src/main.js`. */
  file: string;
  environment: Record<string, string>;
  /** The file for its output. */
  log: string;
  /** Called if it ends unexpectedly. */
  onDeath: (fault: CliFault) => void;
}

/**
 * Starts a program in its own process group, so that Ctrl-C reaches only the demo and everything stops in order.
 *
 * @returns the program, and the fields of the JSON line that it prints when it is ready
 * @throws {CliFault} with its last lines if it ends before that
 */
export async function startProgram(plan: ProgramPlan): Promise<{ program: Program; ready: Record<string, unknown> }> {
  const log = openSync(plan.log, 'w', 0o600);
  const arguments_ = [
    '--enable-source-maps',
    '--require',
    compiled('harness/stop-with-parent.js'),
    compiled(plan.file),
  ];
  const { PATH, HOME, TMPDIR } = process.env;
  const child = spawn(process.execPath, arguments_, {
    cwd: ROOT,
    env: { PATH, HOME, TMPDIR, ...plan.environment },
    stdio: ['pipe', log, log],
    detached: true,
  });
  closeSync(log);
  child.stdin?.on('error', () => {}); // it ended first
  const program = follow(child, plan);
  return { program, ready: await readyLine(child, plan) };
}

function compiled(file: string): string {
  return path.join(ROOT, 'dist', file);
}

function follow(child: ChildProcess, plan: ProgramPlan): Program {
  let stopping: Promise<void> | undefined;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.once('exit', (code, signal) => {
    if (!stopping) plan.onDeath(death(plan, `ended unexpectedly (${signal ?? `code ${code}`})`));
  });
  child.once('error', (error) => plan.onDeath(death(plan, `could not be started (${error.message})`)));
  return {
    stop: () => {
      stopping ??= stop(child, ended);
      return stopping;
    },
  };
}

async function stop(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (hasEnded(child)) return;
  child.kill('SIGTERM');
  const killing = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await ended;
  clearTimeout(killing);
}

async function readyLine(child: ChildProcess, plan: ProgramPlan): Promise<Record<string, unknown>> {
  const giveUpAt = performance.now() + START_MS;
  for (;;) {
    const line = readFileSync(plan.log, 'utf8')
      .split('\n')
      .find((text) => text.includes('"ready":true'));
    if (line) return JSON.parse(line) as Record<string, unknown>;
    if (hasEnded(child)) throw death(plan, 'did not start');
    if (performance.now() > giveUpAt) throw death(plan, `was not ready after ${START_MS / 1_000} s`);
    await delay(POLL_MS);
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
}

function death({ name, log }: ProgramPlan, what: string): CliFault {
  const last = readFileSync(log, 'utf8').trim().split('\n').slice(-LAST_LINES).join('\n');
  return new CliFault(`${name} ${what}. Its last lines (complete output: ${log}):\n${last}`);
}
