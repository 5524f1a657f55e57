import { Argument, type Command, Option } from 'commander';
import type { ListedJobResponse } from '../../compliance/model/job-view.js';
import type { SessionResponse } from '../../sessions/read/session-view.js';
import { type Api, segment } from '../api/api.js';
import { table } from '../output/table.js';

/** Something that is asked of the platform, and waits for a person's word when its answer was lost. */
interface RequestKind<View> {
  command: string;
  description: string;
  /** Of the list. */
  path: string;
  states: string[];
  header: string[];
  /** A row of the table, without names and without what the platform said: both may be personal. */
  row(view: View): unknown[];
  /** The field that names the platform's id of what is linked to. */
  linkedBy: 'sessionId' | 'jobId';
}

interface Requested {
  id: string;
  state: string;
  error: { code: string } | null;
}

const SESSIONS: RequestKind<SessionResponse> = {
  command: 'sessions',
  description: 'sessions, and requests for some; Unknown ones wait for your word',
  path: '/v1/sessions',
  states: ['InProgress', 'Processing', 'Done', 'Error', 'Requested', 'Unknown', 'Rejected'],
  header: ['id', 'changed', 'state', 'reason', 'provider', 'appointment', 'session on the platform'],
  row: ({ id, updatedAt, state, error, provider, partnerAppointmentId, sessionId }) => [
    id,
    updatedAt,
    state,
    error?.code,
    provider,
    partnerAppointmentId,
    sessionId,
  ],
  linkedBy: 'sessionId',
};

const JOBS: RequestKind<ListedJobResponse> = {
  command: 'compliance',
  description: 'compliance jobs; Unknown ones wait for your word',
  path: '/v1/compliance/jobs',
  states: ['Requested', 'Unknown', 'Rejected', 'Abandoned', 'Submitted', 'Completed', 'Failed'],
  header: ['id', 'changed', 'state', 'reason', 'files', 'job on the platform'],
  row: ({ id, updatedAt, state, error, files, jobId }) => [id, updatedAt, state, error?.code, files.length, jobId],
  linkedBy: 'jobId',
};

/** `notebridge sessions …` and `notebridge compliance …` */
export function addRequestCommands(program: Command, api: Api): void {
  addCommands(program, api, SESSIONS);
  addCommands(program, api, JOBS);
}

function addCommands<View extends Requested>(program: Command, api: Api, kind: RequestKind<View>): void {
  const group = program.command(kind.command).description(kind.description);

  group
    .command('list', { isDefault: true })
    .description('list them')
    .addOption(new Option('--state <state>', 'only these').choices(kind.states))
    .option('--json', 'print one JSON object a line')
    .action((options: { state?: string; json?: boolean }) => list(api, kind, options));

  group
    .command('resolve')
    .description('say what became of one whose answer was lost; look on the platform first')
    .argument('<id>')
    .addArgument(
      new Argument('<action>', 'link to what the platform has, create it again, or abandon it').choices([
        'link',
        'create',
        'abandon',
      ]),
    )
    .option('--to <platformId>', "the platform's id of what to link to")
    .action(async (id: string, action: string, { to }: { to?: string }) => {
      const body = { action, ...(to !== undefined && { [kind.linkedBy]: to }) };
      const { state, error } = await api.post<View>(`${kind.path}/${segment(id)}/resolve`, body);
      console.log(`${id}: ${state}${error ? `, ${error.code}` : ''}`);
    });
}

async function list<View extends Requested>(
  api: Api,
  { path, header, row }: RequestKind<View>,
  { state, json }: { state?: string; json?: boolean },
): Promise<void> {
  const rows: unknown[][] = [];
  for await (const view of api.all<View>(path, { state })) {
    if (json) console.log(JSON.stringify(view));
    else rows.push(row(view));
  }
  if (json) return;
  console.log(rows.length === 0 ? 'There are none like that.' : table(header, rows));
}
