import { setTimeout as delay } from 'node:timers/promises';
import { Argument, type Command, Option } from 'commander';
import type { ListedJobResponse } from '../../compliance/compliance.dto.js';
import type { SessionResponse } from '../../sessions/model/session-view.js';
import type { PendingRefreshes } from '../../sessions/refresh/wanted-refreshes.repository.js';
import type { Api } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { counted, printList } from '../output/print.js';
import { LiveLine, type Progress } from '../output/progress.js';

const REFRESH_POLL_MS = 500;

/** What is requested of the platform, and waits for a user's decision when the answer was lost. */
interface RequestKind<View> {
  command: string;
  description: string;
  path: string;
  states: string[];
  /** Without names and without what the platform said: both may be personal. */
  row(view: View): Record<string, unknown>;
  /** The field that names the platform's id of what is linked to. */
  linkedBy: 'sessionId' | 'jobId';
}

const SESSIONS: RequestKind<SessionResponse> = {
  command: 'sessions',
  description: 'sessions, and requests for some; Unknown ones wait for your word',
  path: '/v1/sessions',
  states: ['InProgress', 'Processing', 'Done', 'Error', 'Requested', 'Unknown', 'Rejected'],
  row: ({ id, updatedAt: changed, state, error, provider, partnerAppointmentId: appointment, sessionId }) => {
    return { id, changed, state, reason: error?.code, provider, appointment, 'session on the platform': sessionId };
  },
  linkedBy: 'sessionId',
};

const JOBS: RequestKind<ListedJobResponse> = {
  command: 'compliance',
  description: 'compliance jobs; Unknown ones wait for your word',
  path: '/v1/compliance/jobs',
  states: ['Requested', 'Unknown', 'Rejected', 'Abandoned', 'Submitted', 'Completed', 'Failed'],
  row: ({ id, updatedAt: changed, state, error, files, jobId }) => {
    return { id, changed, state, reason: error?.code, files: files.length, 'job on the platform': jobId };
  },
  linkedBy: 'jobId',
};

/** `notebridge refresh`, `sessions …` and `compliance …` */
export function addRequestCommands(program: Command, api: Api): void {
  program
    .command('refresh')
    .description('fetch sessions from the platform again, for webhooks that never came')
    .option('--since <moment>', 'every session recorded or changed since, such as 2026-01-31')
    .addOption(new Option('--session <id>', "one session: its id here or the platform's").conflicts('since'))
    .option('--no-wait', 'return at once; the service goes on by itself')
    .action((options: { since?: string; session?: string; wait: boolean }) => refresh(api, options));
  addCommands(program, api, SESSIONS);
  addCommands(program, api, JOBS);
}

function addCommands<View extends SessionResponse | ListedJobResponse>(
  program: Command,
  api: Api,
  { command, description, path, states, row, linkedBy }: RequestKind<View>,
): void {
  const group = program.command(command).description(description);

  group
    .command('list', { isDefault: true })
    .description('list them')
    .addOption(new Option('--state <state>', 'only these').choices(states))
    .option('--json', 'print one JSON object a line')
    .action(({ state, json }: { state?: string; json?: boolean }) =>
      printList(api.all<View>(path, { state }), { row, none: 'There are none like that.', json }),
    );

  const action = new Argument('<action>', 'link to what the platform has, create it again, or abandon it');
  group
    .command('resolve')
    .description('say what became of one whose answer was lost; look on the platform first')
    .argument('<id>')
    .addArgument(action.choices(['link', 'create', 'abandon']))
    .option('--to <platformId>', "the platform's id of what to link to")
    .action(async (id: string, action: string, { to }: { to?: string }) => {
      const body = { action, [linkedBy]: to };
      const { state, error } = await api.post<View>(`${path}/${encodeURIComponent(id)}/resolve`, body);
      console.log(`${id}: ${state}${error ? `, ${error.code}` : ''}`);
    });
}

async function refresh(
  api: Api,
  { since, session, wait }: { since?: string; session?: string; wait: boolean },
): Promise<void> {
  if (since === undefined && session === undefined) throw new CliFault('Say what to refresh: --since or --session.');
  const { sessions } = await api.post<{ sessions: number }>('/v1/sessions/refreshes', { since, session });
  console.log(`${counted(sessions, 'session')} to be fetched`);
  if (sessions === 0 || !wait) return;
  const failing = await watchRefresh(api, sessions);
  if (failing === 0) return console.log('All were fetched.');
  console.log(`${counted(failing, 'session')} could not be fetched; the service tries again by itself.`);
  process.exitCode = 2;
}

/** Shows the progress until each session was tried. @returns how many could not be fetched */
async function watchRefresh(api: Api, total: number): Promise<number> {
  const live = new LiveLine(process.stdout);
  const startedAt = performance.now();
  try {
    for (;;) {
      const { pending, failing } = await api.get<PendingRefreshes>('/v1/sessions/refreshes');
      live.show(refreshProgress(total, pending, (performance.now() - startedAt) / 1000));
      if (pending === 0) return failing;
      await delay(REFRESH_POLL_MS);
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
