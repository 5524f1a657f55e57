import { Argument, type Command, Option } from 'commander';
import type { ListedJobResponse } from '../../compliance/compliance.dto.js';
import type { SessionResponse } from '../../sessions/model/session-view.js';
import type { Api } from '../api/api.js';
import { printList } from '../output/print.js';

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

/** `notebridge sessions …` and `notebridge compliance …` */
export function addRequestCommands(program: Command, api: Api): void {
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

  const actions = ['link', 'create', 'abandon'];
  group
    .command('resolve')
    .description('say what became of one whose answer was lost; look on the platform first')
    .argument('<id>')
    .addArgument(
      new Argument('<action>', 'link to what the platform has, create it again, or abandon it').choices(actions),
    )
    .option('--to <platformId>', "the platform's id of what to link to")
    .action(async (id: string, action: string, { to }: { to?: string }) => {
      const body = { action, [linkedBy]: to };
      const { state, error } = await api.post<View>(`${path}/${encodeURIComponent(id)}/resolve`, body);
      console.log(`${id}: ${state}${error ? `, ${error.code}` : ''}`);
    });
}
