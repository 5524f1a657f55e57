import { Argument, type Command, Option } from 'commander';
import type { PersonKind } from '../../people/model/person.js';
import type { PersonResponse } from '../../people/model/person-view.js';
import { RESOLVE_ACTIONS } from '../../people/model/resolve-rule.js';
import type { Trace } from '../../people/read/trace.service.js';
import { type Api, type Page, segment } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { waitSeconds } from '../output/duration.js';
import { personLines, personRow, traceLines } from '../output/person-lines.js';
import { printTable } from '../output/table.js';

const STATES = ['pending', 'waiting', 'synced', 'failed', 'needs-review', 'deleting', 'deleted'];

interface PeopleOptions {
  kind?: PersonKind;
  state?: string;
  email?: string;
  externalId?: string;
  json?: boolean;
}

interface ResolveOptions {
  user?: string;
  wait: number;
  json?: boolean;
}

const kindArgument = () => new Argument('<kind>', 'whom it is about').choices(['provider', 'client']);

/** `notebridge people`, `trace` and `resolve`. */
export function addPeopleCommands(program: Command, api: Api): void {
  program
    .command('people')
    .description('list providers and clients with how they stand; names are shown with --json only')
    .addOption(new Option('--kind <kind>', 'only these').choices(['provider', 'client']))
    .addOption(new Option('--state <state>', 'only these').choices(STATES))
    .option('--email <email>', 'find by email')
    .option('--external-id <id>', "find by the EHR's id")
    .option('--json', 'print one JSON object a line')
    .action((options: PeopleOptions) => listPeople(api, options));

  program
    .command('trace')
    .description('say of one person what is wanted, what is known, what comes next and why; nothing is sent')
    .addArgument(kindArgument())
    .argument('<externalId>')
    .option('--json', 'print what the service answers')
    .action(async (kind: PersonKind, externalId: string, options: { json?: boolean }) => {
      const trace = await api.post<Trace>('/v1/people/trace', { kind, externalId });
      console.log(options.json ? JSON.stringify(trace, null, 2) : traceLines(trace));
    });

  program
    .command('resolve')
    .description('settle by your word what the service could not')
    .addArgument(kindArgument())
    .argument('<externalId>')
    .addArgument(
      new Argument('<action>', 'link to a user of the platform, create, retry, ignore, or delete').choices(
        RESOLVE_ACTIONS,
      ),
    )
    .option('--user <platformUserId>', 'the user to link to')
    .option('--wait <seconds>', 'how long to wait for the outcome, 0 to 60', waitSeconds, 20)
    .option('--json', 'print what the service answers')
    .action((kind: PersonKind, externalId: string, action: string, options: ResolveOptions) =>
      resolve(api, kind, externalId, action, options),
    );
}

async function listPeople(api: Api, options: PeopleOptions): Promise<void> {
  const people = peopleOf(api, options);
  if (options.json) {
    for await (const person of people) console.log(JSON.stringify(person));
    return;
  }
  const header = ['kind', 'external id', 'state', 'reason', 'platform user', 'providers'];
  if ((await printTable(header, rowsOf(people))) === 0) console.log('There is nobody like that.');
}

async function* rowsOf(people: AsyncIterable<PersonResponse>): AsyncGenerator<readonly unknown[]> {
  for await (const person of people) yield personRow(person);
}

async function* peopleOf(api: Api, { kind, state, email, externalId }: PeopleOptions): AsyncGenerator<PersonResponse> {
  if (email !== undefined || externalId !== undefined) {
    if (email !== undefined && externalId !== undefined) throw new CliFault('Say --email or --external-id, not both.');
    const wanted = email === undefined ? { externalId } : { email };
    const found = await api.post<Page<PersonResponse>>('/v1/people/search', wanted);
    yield* found.items.filter((person) => (!kind || person.kind === kind) && (!state || person.sync.state === state));
    return;
  }
  for (const each of kind ? [kind] : (['provider', 'client'] as const)) {
    yield* api.all<PersonResponse>(`/v1/${each}s`, { state });
  }
}

async function resolve(
  api: Api,
  kind: PersonKind,
  externalId: string,
  action: string,
  { user, wait, json }: ResolveOptions,
): Promise<void> {
  if (action === 'link' && user === undefined) {
    throw new CliFault('Say whom to link to: --user, with the id that the platform gave this person.');
  }
  const body = { action, ...(user !== undefined && { platformUserId: user }) };
  const person = await api.post<PersonResponse>(`/v1/${kind}s/${segment(externalId)}/resolve`, body, { wait });
  console.log(json ? JSON.stringify(person, null, 2) : personLines(person));
}
