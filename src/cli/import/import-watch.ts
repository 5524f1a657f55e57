import { setTimeout as delay } from 'node:timers/promises';
import type { ImportResponse } from '../../imports/api/import-view.js';
import { inSentence, labelOf } from '../../words/words.js';
import type { Api } from '../api/api.js';
import { Unreachable } from '../api/cli-fault.js';
import { counted, printAnswer } from '../output/print.js';
import { LiveLine, type Progress } from '../output/progress.js';
import { exitCodeOf, importSummary, lacksWorker, NO_WORKER } from './import-summary.js';

/** @param id as the user gave it */
export const pathOf = (id: string): string => `/v1/imports/${encodeURIComponent(id)}`;

const POLL_MS = 300;

/** The members of an import that show its progress. */
export type ImportProgress = Pick<ImportResponse, 'counts' | 'calls' | 'etaSeconds' | 'etaMinSeconds' | 'etaUnknown'>;

/** How often an unavailable service is asked, and how long until the watch ends. */
const OUTAGE_POLL_MS = 2_000;
const MAX_OUTAGE_MS = 300_000;

interface WatchOptions {
  signal?: AbortSignal;
  /** The plan is being applied, so the state `planned` passes. */
  applied?: boolean;
  /** Waits this many milliseconds. */
  pause?: (ms: number) => Promise<unknown>;
}

/** The progress of an import. @param view as the service answers it */
export function importProgress(view: ImportProgress): Progress {
  const { counts, calls, etaSeconds, etaMinSeconds, etaUnknown } = view;
  const [done, note] = [counts.total - counts.pending, counted(calls.made, 'call')];
  const eta = {
    etaSeconds,
    etaMinSeconds,
    etaUnknown: etaUnknown ? inSentence(labelOf('etaUnknown', etaUnknown)) : undefined,
  };
  return { done, total: counts.total, noun: 'rows', note, ...eta };
}

/**
 * Shows an import's progress until it ends or needs a decision. Waits for a service that restarts.
 *
 * @returns the settled import
 * @throws the signal's reason if it is aborted, and {@link Unreachable} if the service stays unavailable
 */
export async function watchImport(
  api: Api,
  id: string,
  live: LiveLine,
  { signal, applied = false, pause = (ms) => delay(ms, undefined, { signal }) }: WatchOptions = {},
): Promise<ImportResponse> {
  let outageMs = 0;
  let lackedWorker = false;
  try {
    for (;;) {
      const view = await api.get<ImportResponse>(pathOf(id), { signal }).catch((error: unknown) => {
        if (!(error instanceof Unreachable) || outageMs >= MAX_OUTAGE_MS) throw error;
      });
      if (view?.state === 'running' || view?.state === 'completed') live.show(importProgress(view));
      if (view && isSettled(view, applied)) return view;
      if (view && lacksWorker(view) && !lackedWorker) live.say(NO_WORKER);
      if (view) lackedWorker = lacksWorker(view);
      if (!view && outageMs === 0) {
        live.say('The service does not answer. Waiting; the import continues with it …');
      }
      outageMs = view ? 0 : outageMs + OUTAGE_POLL_MS;
      await pause(view ? POLL_MS : OUTAGE_POLL_MS);
    }
  } finally {
    live.end();
  }
}

function isSettled({ state }: ImportResponse, applied: boolean): boolean {
  return state === 'planned' ? !applied : state !== 'staging' && state !== 'running';
}

/** Watches an import to its end and sets the exit code; Ctrl-C ends the watch, not the import. */
export async function watchToEnd(api: Api, id: string, applied = false, json = false): Promise<void> {
  onInterrupt(
    `The import continues. To watch it again: npx notebridge imports ${id}; to stop it: npx notebridge cancel ${id}`,
  );
  const live = new LiveLine(json ? { write: () => undefined } : process.stdout);
  const view = await watchImport(api, id, live, { applied });
  printAnswer(view, json, importSummary);
  process.exitCode = exitCodeOf(view);
}

let interruptMessage: string | undefined;

/** Sets what Ctrl-C prints before it ends the command. */
export function onInterrupt(text: string): void {
  // One permanent listener: a signal that arrives while listeners are exchanged would be lost.
  if (interruptMessage === undefined) {
    process.on('SIGINT', () => {
      console.log(process.stdout.isTTY ? `\n${interruptMessage}` : interruptMessage);
      process.exit(130);
    });
  }
  interruptMessage = text;
}
