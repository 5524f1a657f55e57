import { setTimeout as delay } from 'node:timers/promises';
import { Argument, type Command, Option } from 'commander';
import type { ListedJobResponse } from '../../compliance/compliance.dto.js';
import type { PendingRefreshesResponse, SessionResponse } from '../../sessions/model/session-view.js';
import { codesOf, inSentence, labelOf, WORDS } from '../../words/words.js';
import { type Api, withQuery } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { examples } from '../output/help.js';
import { listing, valueOptions } from '../output/list-command.js';
import { momentOption } from '../output/moment-option.js';
import { counted, printAnswer } from '../output/print.js';
import { LiveLine, type Progress } from '../output/progress.js';

const REFRESH_POLL_MS = 500;

const ACTIONS = {
  link: 'it exists on the platform (pass --to)',
  create: 'send the request again',
  abandon: 'give up the request',
};

/** A request to the platform. If its answer was lost, an operator has to resolve it. */
interface RequestKind<View> {
  command: string;
  /** The listed items, in the plural. */
  noun: string;
  description: string;
  path: string;
  states: 'sessionState' | 'complianceState';
  /** Options of the list in addition to --state. */
  filters?: Option[];
  /** Without names and texts of the platform, which may be personal. */
  row(view: View): Record<string, unknown>;
  /** The ways to resolve one. */
  actions: readonly (keyof typeof ACTIONS)[];
  /** The field with the platform's id to link to. */
  linkedBy: 'sessionId' | 'jobId';
}

const SESSIONS: RequestKind<SessionResponse> = {
  command: 'sessions',
  noun: 'sessions',
  description: 'list sessions and requests for them, or resolve a request whose outcome is unknown',
  path: '/v1/sessions',
  states: 'sessionState',
  filters: [
    ...valueOptions({
      '--client <externalId>': 'only sessions of this client',
      '--provider <externalId>': 'only sessions of this provider',
      '--appointment <id>': 'only the session of this appointment of the EHR',
      '--since <moment>': 'only sessions changed since then, such as 2026-01-31',
    }),
    new Option('--order <order>', 'order by the last change')
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
  actions: ['link', 'create', 'abandon'],
  linkedBy: 'sessionId',
};

const JOBS: RequestKind<ListedJobResponse> = {
  command: 'compliance',
  noun: 'jobs',
  description: 'list compliance jobs, or resolve one whose outcome or result is unknown',
  path: '/v1/compliance/jobs',
  states: 'complianceState',
  filters: [
    new Option('--review <code>', 'only jobs that need this decision').choices(codesOf(WORDS.complianceReview)),
  ],
  row: ({ id, updatedAt: changed, state, error, files, jobId }) => {
    const shown = labelOf('complianceState', state);
    return { id, changed, state: shown, reason: error?.code, files: files.length, 'job on the platform': jobId };
  },
  actions: ['link', 'abandon'],
  linkedBy: 'jobId',
};

/** `notebridge refresh`, `sessions …` and `compliance …` */
export function addRequestCommands(program: Command, api: Api): void {
  program
    .command('refresh')
    .description('fetch sessions from the platform again, if webhooks were lost')
    .addOption(momentOption('--since <moment>', 'all sessions recorded or changed since then, such as 2026-01-31'))
    .addOption(new Option('--session <id>', "one session: its id here or the platform's").conflicts('since'))
    .option('--no-wait', 'return immediately; the service continues in the background')
    .option('--json', 'print only the counts at the end, as JSON')
    .addHelpText('after', examples('refresh --since 2026-01-31'))
    .action((options: RefreshOptions) => refresh(api, options));
  addCommands(program, api, SESSIONS);
  addCommands(program, api, JOBS);
}

function addCommands<View extends SessionResponse | ListedJobResponse>(
  program: Command,
  api: Api,
  { command, noun, description, path, states, filters = [], row, actions, linkedBy }: RequestKind<View>,
): void {
  const group = program.command(command).description(description);

  const list = group
    .command('list', { isDefault: true })
    .description(`list ${noun}`)
    .addHelpText('after', examples(`${command} --state Unknown`));
  listing<View>(list, api, {
    from: path,
    options: [
      new Option('--state <state>', `only ${noun} in this state`).choices(codesOf<string>(WORDS[states])),
      ...filters,
    ],
    parameters: { since: 'updatedSince' },
    limit: 50,
    row,
    none: `No matching ${noun}.`,
  });

  const action = new Argument('<action>', actions.map((each) => `${each}: ${ACTIONS[each]}`).join('; '));
  group
    .command('resolve')
    .description('resolve a request whose outcome is unknown; first look on the platform whether it exists')
    .argument('<id>', 'the id that the list shows')
    .addArgument(action.choices(actions))
    .option('--to <platformId>', "the platform's id to link to")
    .option('--json', "print the service's answer")
    .addHelpText('after', examples(`${command} resolve 7b0f5a3e-0000-4000-8000-000000000000 link --to abc123`))
    .action(async (id: string, action: string, { to, json }: { to?: string; json?: boolean }) => {
      if (action === 'link' && to === undefined) throw new CliFault("Pass --to with the platform's id to link to.");
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
  if (since === undefined && session === undefined) throw new CliFault('Pass --since or --session.');
  const { sessions } = await api.post<{ sessions: number }>('/v1/sessions/refreshes', { since, session });
  const say = json ? () => undefined : console.log;
  say(`${counted(sessions, 'session')} to fetch`);
  const isWatched = sessions > 0 && wait;
  const failing = isWatched ? await watchRefresh(api, { total: sessions, session, json }) : undefined;
  if (json) console.log(JSON.stringify({ sessions, failing }));
  if (failing === 0) say('All sessions were fetched.');
  if (!failing) return;
  say(`${counted(failing, 'session')} could not be fetched; the service retries automatically.`);
  process.exitCode = 2;
}

/**
 * Shows the progress, unless with --json, until each session was fetched or failed.
 *
 * @param watched `session` is the value of --session
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
      const { pending, failing } = await api.get<PendingRefreshesResponse>(
        withQuery('/v1/sessions/refreshes', { session }),
      );
      if (!json) live.show(refreshProgress(total, pending, (performance.now() - startedAt) / 1000));
      if (pending === 0) return failing;
      await delay(REFRESH_POLL_MS);
    }
  } finally {
    live.end();
  }
}

/**
 * The progress of a refresh, and the remaining time at the pace so far.
 *
 * @param pending sessions still to fetch; events that arrive during the refresh add to them
 * @param seconds since the refresh began
 */
export function refreshProgress(total: number, pending: number, seconds: number): Progress {
  const done = Math.min(total, Math.max(0, total - pending));
  return { done, total, noun: 'sessions', etaSeconds: done === 0 ? null : (seconds / done) * (total - done) };
}
