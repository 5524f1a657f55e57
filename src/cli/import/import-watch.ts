import { setTimeout as delay } from 'node:timers/promises';
import type { ImportResponse } from '../../imports/report/import-view.js';
import type { Api } from '../api/api.js';
import { Unreachable } from '../api/cli-fault.js';
import { counted, printAnswer } from '../output/print.js';
import { LiveLine, type Progress } from '../output/progress.js';
import { exitCodeOf, importSummary } from './import-summary.js';

/** @param id as the user gave it */
export const pathOf = (id: string): string => `/v1/imports/${encodeURIComponent(id)}`;

const POLL_MS = 300;

/** Milliseconds between two requests while the service does not answer, and after which it is believed to stay away. */
const AWAY_POLL_MS = 2_000;
const AWAY_MOST_MS = 300_000;

interface WatchOptions {
  signal?: AbortSignal;
  /** The plan is to be done: it passes through the state in which others wait for that. */
  applied?: boolean;
  /** Lets time pass. @param ms milliseconds */
  pause?: (ms: number) => Promise<unknown>;
}

/** Why nothing is sent at present. */
const WHY_UNKNOWN: Record<NonNullable<ImportResponse['etaUnknown']>, string> = {
  paused: 'it is paused',
  'not-configured': 'PLATFORM_CONTRACT has no apiKey.header, so nothing is sent',
  'platform-unauthorized': 'the platform refuses the API key, so nothing is sent',
  'platform-address': 'the platform does not know the address, so nothing is sent',
  'platform-rejects': 'the platform rejects an operation for everyone (npx notebridge status)',
  'rate-limited': 'the platform asked for fewer calls',
  'platform-fault': 'the platform gives no readable answers, so little is sent',
};

function importProgress({ counts, calls, etaSeconds, etaUnknown }: ImportResponse): Progress {
  const why = etaUnknown ? WHY_UNKNOWN[etaUnknown] : undefined;
  const [done, note] = [counts.total - counts.pending, counted(calls.made, 'call')];
  return { done, total: counts.total, noun: 'rows', note, etaSeconds, etaUnknown: why };
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
  { signal, applied = false, pause = (ms) => delay(ms, undefined, { signal }) }: WatchOptions = {},
): Promise<ImportResponse> {
  let awayMs = 0;
  try {
    for (;;) {
      const view = await api.get<ImportResponse>(pathOf(id), { signal }).catch((error: unknown) => {
        if (!(error instanceof Unreachable) || awayMs >= AWAY_MOST_MS) throw error;
      });
      if (view?.state === 'running' || view?.state === 'completed') live.show(importProgress(view));
      if (view && isAtRest(view, applied)) return view;
      if (!view && awayMs === 0) {
        live.say('The service does not answer at present; the import goes on with it. Waiting …');
      }
      awayMs = view ? 0 : awayMs + AWAY_POLL_MS;
      await pause(view ? POLL_MS : AWAY_POLL_MS);
    }
  } finally {
    live.end();
  }
}

function isAtRest({ state }: ImportResponse, applied: boolean): boolean {
  return state === 'planned' ? !applied : state !== 'staging' && state !== 'running';
}

/** Watches an import and ends the command as its outcome says; Ctrl-C ends the watch, not the import. */
export async function watchToEnd(api: Api, id: string, applied = false, json = false): Promise<void> {
  onInterrupt(
    `The import goes on. To watch it again: npx notebridge imports ${id}; to stop it: npx notebridge cancel ${id}`,
  );
  const live = new LiveLine(json ? { write: () => undefined } : process.stdout);
  const view = await watchImport(api, id, live, { applied });
  printAnswer(view, json, importSummary);
  process.exitCode = exitCodeOf(view);
}

let farewell: string | undefined;

/** What Ctrl-C says from now on before it ends the command. */
export function onInterrupt(text: string): void {
  // One listener for good: a signal that arrives while listeners are exchanged is lost with the old one.
  if (farewell === undefined) {
    process.on('SIGINT', () => {
      console.log(process.stdout.isTTY ? `\n${farewell}` : farewell);
      process.exit(130);
    });
  }
  farewell = text;
}
