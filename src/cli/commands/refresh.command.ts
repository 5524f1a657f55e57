import { setTimeout as delay } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import type { PendingRefreshes } from '../../sessions/refresh/wanted-refreshes.repository.js';
import type { Api } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { counted } from '../output/duration.js';
import { LiveLine, type Progress } from '../output/progress.js';

const POLL_MS = 500;

interface RefreshOptions {
  since?: string;
  session?: string;
  wait: boolean;
}

/** `notebridge refresh` */
export function addRefreshCommand(program: Command, api: Api): void {
  program
    .command('refresh')
    .description('fetch sessions from the platform again, for webhooks that never came')
    .addOption(new Option('--since <moment>', 'every session recorded or changed since, such as 2026-01-31'))
    .addOption(new Option('--session <id>', "one session: its id here or the platform's").conflicts('since'))
    .option('--no-wait', 'return at once; the service goes on by itself')
    .action((options: RefreshOptions) => refresh(api, options));
}

async function refresh(api: Api, { since, session, wait }: RefreshOptions): Promise<void> {
  if (since === undefined && session === undefined) throw new CliFault('Say what to refresh: --since or --session.');
  const { sessions } = await api.post<{ sessions: number }>('/v1/sessions/refreshes', { since, session });
  console.log(`${counted(sessions, 'session')} to be fetched`);
  if (sessions === 0 || !wait) return;
  const failing = await watch(api, sessions);
  if (failing === 0) return;
  console.log(`${counted(failing, 'session')} could not be fetched; the service tries again by itself.`);
  process.exitCode = 2;
}

/** Shows the progress until each session was tried. @returns how many could not be fetched */
async function watch(api: Api, total: number): Promise<number> {
  const live = new LiveLine(process.stdout);
  const startedAt = performance.now();
  try {
    for (;;) {
      const { pending, failing } = await api.get<PendingRefreshes>('/v1/sessions/refreshes');
      live.show(refreshProgress(total, pending, (performance.now() - startedAt) / 1000));
      if (pending === 0) return failing;
      await delay(POLL_MS);
    }
  } finally {
    live.end();
  }
}

/**
 * How far a refresh is, and how long the rest takes at the pace so far.
 *
 * @param pending sessions that are still to be fetched; events that arrive meanwhile add to them
 * @param seconds since it began
 */
export function refreshProgress(total: number, pending: number, seconds: number): Progress {
  const done = Math.min(total, Math.max(0, total - pending));
  return { done, total, noun: 'sessions', etaSeconds: done === 0 ? null : (seconds / done) * (total - done) };
}
