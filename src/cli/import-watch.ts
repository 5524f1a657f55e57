import { setTimeout as delay } from 'node:timers/promises';
import type { ImportView } from '../imports/import-view.js';
import type { Api } from './api.js';
import { counted } from './duration.js';
import type { LiveLine } from './live-line.js';
import type { Progress } from './progress-bar.js';

/** Milliseconds between two looks. */
const LOOK_MS = 300;

/** How an import is watched. */
export interface WatchOptions {
  signal?: AbortSignal;
  /** Somebody said that the plan is to be done. */
  applied?: boolean;
}

/** How far an import is. */
export function importProgress(view: ImportView): Progress {
  const { total, pending } = view.counts;
  return {
    done: total - pending,
    total,
    noun: 'rows',
    note: counted(view.calls.made, 'call'),
    etaSeconds: view.etaSeconds,
  };
}

/**
 * Shows an import's progress until it needs nobody or somebody; whoever stops watching does not stop the import.
 *
 * @returns the import at rest
 * @throws the signal's reason when it is aborted
 */
export async function watchImport(
  api: Api,
  id: string,
  live: LiveLine,
  options: WatchOptions = {},
): Promise<ImportView> {
  const { signal, applied = false } = options;
  try {
    for (;;) {
      const view = await api.get<ImportView>(`/v1/imports/${id}`, { signal });
      if (isAtRest(view, applied)) {
        if (view.state === 'completed') live.show(importProgress(view));
        return view;
      }
      if (view.state === 'running') live.show(importProgress(view));
      await delay(LOOK_MS, undefined, { signal });
    }
  } finally {
    live.end();
  }
}

/** A plan that waits for somebody's word is at rest; one that is to be applied passes through that state. */
function isAtRest(view: ImportView, applied: boolean): boolean {
  if (view.state === 'planned') return !applied && (view.dryRun || view.mode === 'snapshot');
  return view.state !== 'staging' && view.state !== 'running';
}
