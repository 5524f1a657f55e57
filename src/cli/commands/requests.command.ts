import { setTimeout as delay } from 'node:timers/promises';
import { Argument, type Command, Option } from 'commander';
import type { ListedJobResponse } from '../../compliance/compliance.dto.js';
import type { SessionResponse } from '../../sessions/model/session-view.js';
import type { PendingRefreshes } from '../../sessions/refresh/refresh-scheduler.repository.js';
import { codesOf, inSentence, labelOf, WORDS } from '../../words/words.js';
import { type Api, withQuery } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { examples } from '../output/help.js';
import { listing, valued } from '../output/list-command.js';
import { momentOption } from '../output/moment-option.js';
import { counted, printAnswer } from '../output/print.js';
import { LiveLine, type Progress } from '../output/progress.js';

const REFRESH_POLL_MS = 500;

/** What is requested of the platform, and waits for a user's decision when the answer was lost. */
interface RequestKind<View> {
  command: string;
  description: string;
  path: string;
  states: 'sessionState' | 'complianceState';
  /** Options of the list beside --state. */
  filters?: Option[];
  /** Without names and without what the platform said: both may be personal. */
  row(view: View): Record<string, unknown>;
  /** The field that names the platform's id of what is linked to. */
  linkedBy: 'sessionId' | 'jobId';
}

const SESSIONS: RequestKind<SessionResponse> = {
  command: 'sessions',
  description: 'sessions, and requests for some; Unknown ones wait for your word',
  path: '/v1/sessions',
  states: 'sessionState',
  filters: [
    ...valued({
      '--client <externalId>': 'only those of this client',
      '--provider <externalId>': 'only those of this provider',
      '--appointment <id>': "only that of the EHR's appointment",
      '--since <moment>': 'only what changed since, such as 2026-01-31',
    }),
    new Option('--order <order>', 'by the last change')
      .choices(['newest-first', 'oldest-first'])
      .default('newest-first'),
  ],
  row: ({ id, updatedAt: changed, state, error, provider, partnerAppointmentId: appointment, sessionId }) => {
    const shown = labelOf('sessionState', state);
    return {
      id,
      changed,
      state: shown,
      reason: error?.code,
      provider,
      appointment,
      'session on the platform': sessionId,
    };
  },
  linkedBy: 'sessionId',
};

const JOBS: RequestKind<ListedJobResponse> = {
  command: 'compliance',
  description: 'compliance jobs; Unknown ones wait for your word',
  path: '/v1/compliance/jobs',
  states: 'complianceState',
  filters: [
    new Option('--review <code>', 'only those that await this decision').choices(codesOf(WORDS.complianceReview)),
  ],
  row: ({ id, updatedAt: changed, state, error, files, jobId }) => {
    const shown = labelOf('complianceState', state);
    return { id, changed, state: shown, reason: error?.code, files: files.length, 'job on the platform': jobId };
  },
  linkedBy: 'jobId',
};

/** `notebridge refresh`, `sessions …` and `compliance …` */
export function addRequestCommands(program: Command, api: Api): void {
  program
    .command('refresh')
    .description('fetch sessions from the platform again, for webhooks that never came')
    .addOption(momentOption('--since <moment>', 'every session recorded or changed since, such as 2026-01-31'))
    .addOption(new Option('--session <id>', "one session: its id here or the platform's").conflicts('since'))
    .option('--no-wait', 'return at once; the service goes on by itself')
    .option('--json', 'print nothing but the counts at the end')
    .addHelpText('after', examples('refresh --since 2026-01-31'))
    .action((options: RefreshOptions) => refresh(api, options));
  addCommands(program, api, SESSIONS);
  addCommands(program, api, JOBS);
}

function addCommands<View extends SessionResponse | ListedJobResponse>(
  program: Command,
  api: Api,
  { command, description, path, states, filters = [], row, linkedBy }: RequestKind<View>,
): void {
  const group = program.command(command).description(description);

  const list = group
    .command('list', { isDefault: true })
    .description('list them')
    .addHelpText('after', examples(`${command} --state Unknown`));
  listing<View>(list, api, {
    from: path,
    options: [new Option('--state <state>', 'only these').choices(codesOf<string>(WORDS[states])), ...filters],
    parameters: { since: 'updatedSince' },
    limit: 50,
    row,
    none: 'There are none like that.',
  });

  const action = new Argument('<action>', 'link to what the platform has, create it again, or abandon it');
  group
    .command('resolve')
    .description('say what became of one whose answer was lost; look on the platform first')
    .argument('<id>')
    .addArgument(action.choices(['link', 'create', 'abandon']))
    .option('--to <platformId>', "the platform's id of what to link to")
    .option('--json', 'print what the service answers')
    .addHelpText('after', examples(`${command} resolve 7b0f5a3e-0000-4000-8000-000000000000 link --to abc123`))
    .action(async (id: string, action: string, { to, json }: { to?: string; json?: boolean }) => {
      if (action === 'link' && to === undefined)
        throw new CliFault('Say what to link to: --to, with the id that the platform gave it.');
      const body = { action, [linkedBy]: to };
      const view = await api.post<View>(`${path}/${encodeURIComponent(id)}/resolve`, body);
      printAnswer(
        view,
        json,
        ({ state, error }) => `${id}: ${inSentence(labelOf(states, state))}${error ? `, ${error.code}` : ''}`,
      );
    });
}

interface RefreshOptions {
  since?: string;
  session?: string;
  wait: boolean;
  json?: boolean;
}

async function refresh(api: Api, { since, session, wait, json }: RefreshOptions): Promise<void> {
  if (since === undefined && session === undefined) throw new CliFault('Say what to refresh: --since or --session.');
  const { sessions } = await api.post<{ sessions: number }>('/v1/sessions/refreshes', { since, session });
  const say = json ? () => undefined : console.log;
  say(`${counted(sessions, 'session')} to be fetched`);
  const isWatched = sessions > 0 && wait;
  const failing = isWatched ? await watchRefresh(api, { total: sessions, session, json }) : undefined;
  if (json) console.log(JSON.stringify({ sessions, failing }));
  if (failing === 0) say('All were fetched.');
  if (!failing) return;
  say(`${counted(failing, 'session')} could not be fetched; the service tries again by itself.`);
  process.exitCode = 2;
}

/**
 * Shows the progress, unless JSON is wanted, until each session was tried.
 *
 * @param watched with the session that alone was asked for, if one was
 * @returns how many could not be fetched
 */
async function watchRefresh(
  api: Api,
  watched: { total: number; session: string | undefined; json: boolean | undefined },
): Promise<number> {
  const { total, session, json } = watched;
  const live = new LiveLine(process.stdout);
  const startedAt = performance.now();
  try {
    for (;;) {
      const { pending, failing } = await api.get<PendingRefreshes>(withQuery('/v1/sessions/refreshes', { session }));
      if (!json) live.show(refreshProgress(total, pending, (performance.now() - startedAt) / 1000));
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
