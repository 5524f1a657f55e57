import { setTimeout as delay } from 'node:timers/promises';
import type { ImportResponse } from '../../imports/report/import-view.js';
import type { Api } from '../api/api.js';
import { Unreachable } from '../api/cli-fault.js';
import { counted } from '../output/duration.js';
import type { LiveLine, Progress } from '../output/progress.js';

const POLL_MS = 300;

/** Milliseconds between two requests while the service does not answer, and after which it counts as gone. */
const AWAY_POLL_MS = 2_000;
const AWAY_MOST_MS = 300_000;

/** How an import is watched. */
export interface WatchOptions {
  signal?: AbortSignal;
  /** The plan was applied. */
  applied?: boolean;
  /** Lets time pass. @param ms milliseconds */
  pause?: (ms: number, signal?: AbortSignal) => Promise<unknown>;
}

const pauseFor: Required<WatchOptions>['pause'] = (ms, signal) => delay(ms, undefined, { signal });

/** Why nothing is sent at present. */
const WHY_UNKNOWN: Record<NonNullable<ImportResponse['etaUnknown']>, string> = {
  paused: 'it is paused',
  'not-configured': 'PLATFORM_CONTRACT has no apiKey.header, so nothing is sent',
  'platform-unauthorized': 'the platform refuses the API key, so nothing is sent',
  'platform-address': 'the platform does not know the address, so nothing is sent',
  'platform-fault': 'the platform gives no readable answers, so little is sent',
};

/** How far an import is. */
export function importProgress(view: ImportResponse): Progress {
  const { total, pending } = view.counts;
  return {
    done: total - pending,
    total,
    noun: 'rows',
    note: counted(view.calls.made, 'call'),
    etaSeconds: view.etaSeconds,
    etaUnknown: view.etaUnknown ? WHY_UNKNOWN[view.etaUnknown] : undefined,
  };
}

/**
 * Shows an import's progress until it is at rest; to stop watching does not stop the import. A service that is started
 * again meanwhile is waited for.
 *
 * @returns the import at rest
 * @throws the signal's reason when it is aborted
 */
export async function watchImport(
  api: Api,
  id: string,
  live: LiveLine,
  options: WatchOptions = {},
): Promise<ImportResponse> {
  const { signal, applied = false, pause = pauseFor } = options;
  try {
    for (;;) {
      const view = await look(api, id, live, pause, signal);
      if (isAtRest(view, applied)) {
        if (view.state === 'completed') live.show(importProgress(view));
        return view;
      }
      if (view.state === 'running') live.show(importProgress(view));
      await pause(POLL_MS, signal);
    }
  } finally {
    live.end();
  }
}

/** @throws {Unreachable} when the service stays away */
async function look(
  api: Api,
  id: string,
  live: LiveLine,
  pause: typeof pauseFor,
  signal?: AbortSignal,
): Promise<ImportResponse> {
  for (let awayMs = 0; ; awayMs += AWAY_POLL_MS) {
    try {
      return await api.get<ImportResponse>(`/v1/imports/${id}`, { signal });
    } catch (error) {
      if (!(error instanceof Unreachable) || awayMs >= AWAY_MOST_MS) throw error;
      if (awayMs === 0) live.say('The service does not answer at present; the import goes on with it. Waiting …');
      await pause(AWAY_POLL_MS, signal);
    }
  }
}

/** A plan waits to be applied; one that was applied passes through that state. */
function isAtRest(view: ImportResponse, applied: boolean): boolean {
  if (view.state === 'planned') return !applied;
  return view.state !== 'staging' && view.state !== 'running';
}
