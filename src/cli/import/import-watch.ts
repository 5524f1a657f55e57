import { setTimeout as delay } from 'node:timers/promises';
import type { ImportResponse } from '../../imports/report/import-view.js';
import type { Api } from '../api/api.js';
import { Unreachable } from '../api/cli-fault.js';
import { counted } from '../output/duration.js';
import { printAnswer } from '../output/print.js';
import { LiveLine, type Progress } from '../output/progress.js';
import { exitCodeOf, importSummary } from './import-summary.js';

const POLL_MS = 300;

/** Milliseconds between two requests while the service does not answer, and after which it is believed to stay away. */
const AWAY_POLL_MS = 2_000;
const AWAY_MOST_MS = 300_000;

/** How an import is watched. */
interface WatchOptions {
  signal?: AbortSignal;
  /** The plan is to be done: it passes through the state in which others wait for that. */
  applied?: boolean;
  /** Lets time pass. @param ms milliseconds */
  pause?: (ms: number, signal?: AbortSignal) => Promise<unknown>;
}

/** Why nothing is sent at present. */
const WHY_UNKNOWN: Record<NonNullable<ImportResponse['etaUnknown']>, string> = {
  paused: 'it is paused',
  'not-configured': 'PLATFORM_CONTRACT has no apiKey.header, so nothing is sent',
  'platform-unauthorized': 'the platform refuses the API key, so nothing is sent',
  'platform-address': 'the platform does not know the address, so nothing is sent',
  'platform-fault': 'the platform gives no readable answers, so little is sent',
};

function importProgress({ counts, calls, etaSeconds, etaUnknown }: ImportResponse): Progress {
  return {
    done: counts.total - counts.pending,
    total: counts.total,
    noun: 'rows',
    note: counted(calls.made, 'call'),
    etaSeconds,
    etaUnknown: etaUnknown ? WHY_UNKNOWN[etaUnknown] : undefined,
  };
}

/**
 * Shows an import's progress until it ends or waits for a user's decision. A service that starts again meanwhile is
 * waited for.
 *
 * @returns the import at rest
 * @throws the signal's reason when it is aborted, and {@link Unreachable} when the service stays away
 */
export async function watchImport(
  api: Api,
  id: string,
  live: LiveLine,
  { signal, applied = false, pause = (ms, stop) => delay(ms, undefined, { signal: stop }) }: WatchOptions = {},
): Promise<ImportResponse> {
  let awayMs = 0;
  try {
    for (;;) {
      const view = await api.get<ImportResponse>(`/v1/imports/${id}`, { signal }).catch((error: unknown) => {
        if (!(error instanceof Unreachable) || awayMs >= AWAY_MOST_MS) throw error;
      });
      if (view?.state === 'running' || view?.state === 'completed') live.show(importProgress(view));
      if (view && isAtRest(view, applied)) return view;
      if (!view && awayMs === 0) {
        live.say('The service does not answer at present; the import goes on with it. Waiting …');
      }
      awayMs = view ? 0 : awayMs + AWAY_POLL_MS;
      await pause(view ? POLL_MS : AWAY_POLL_MS, signal);
    }
  } finally {
    live.end();
  }
}

function isAtRest({ state }: ImportResponse, applied: boolean): boolean {
  return state === 'planned' ? !applied : state !== 'staging' && state !== 'running';
}

/** Watches an import and ends the command as its outcome says. */
export async function watchToEnd(
  api: Api,
  id: string,
  { json, ...options }: WatchOptions & { json?: boolean },
): Promise<void> {
  const live = new LiveLine(json ? { write: () => undefined } : process.stdout);
  const view = await watchImport(api, id, live, options);
  printAnswer(view, json, importSummary);
  process.exitCode = exitCodeOf(view);
}

/** Runs work that Ctrl-C ends with 130. @param farewell what is said then */
export async function untilInterrupted(
  work: (signal: AbortSignal) => Promise<unknown>,
  farewell: () => string,
): Promise<void> {
  const controller = new AbortController();
  const stop = () => controller.abort();
  process.once('SIGINT', stop);
  try {
    await work(controller.signal);
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    console.log(farewell());
    process.exitCode = 130;
  } finally {
    process.off('SIGINT', stop);
  }
}

/** What is said when no one watches an import any longer. */
export function goesOn(id: string): string {
  return `The import goes on. To watch it again: npx notebridge imports ${id}; to stop it: npx notebridge cancel ${id}`;
}
