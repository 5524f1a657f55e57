import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import type { Page } from '../../http/request/page.js';
import type { ResolveSelectionResponse } from '../../people/api/people.dto.js';
import type { PersonResponse } from '../../people/api/person-view.js';
import { PERSON_STATES, type PersonKind } from '../../people/model/person.js';
import { UNSETTLED_CODES } from '../../people/model/person-codes.js';
import { BULK_ACTIONS, RESOLVE_ACTIONS } from '../../people/model/resolve-rule.js';
import { inSentence, labelOf } from '../../words/words.js';
import type { Api } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { isConfirmed } from '../output/confirm.js';
import { examples } from '../output/help.js';
import { listing } from '../output/list-command.js';
import { counted, lines, printAnswer } from '../output/print.js';
import { saveAnswer } from '../output/save-answer.js';

const KINDS: PersonKind[] = ['provider', 'client'];

/** Seconds that the service waits at most (`Prefer: wait`). */
const LONGEST_WAIT = 60;

interface ResolveOptions {
  user?: string;
  wait: number;
  json?: boolean;
}

interface SelectionOptions {
  kind?: PersonKind;
  yes?: boolean;
  json?: boolean;
}

const kindArgument = () => new Argument('<kind>', 'whom it is about').choices(KINDS);

/** `notebridge people` and `resolve`. */
export function addPeopleCommands(program: Command, api: Api): void {
  const people = program
    .command('people')
    .description('list providers and clients with how they stand; names are shown with --json only')
    .addHelpText(
      'after',
      examples('people --state needs-review', 'people --external-id C-1', 'people --csv --output people.csv'),
    );
  listing<PersonResponse>(people, api, {
    from: (query) => peopleOf(api, query),
    options: [
      new Option('--kind <kind>', 'only these').choices(KINDS),
      new Option('--state <state>', 'only these').choices(PERSON_STATES),
      new Option('--email <email>', 'find by email').conflicts('externalId'),
      new Option('--external-id <id>', "find by the EHR's id"),
      new Option('--csv', 'print all people with their platform users as CSV, which can be imported again').conflicts([
        'kind',
        'state',
        'email',
        'externalId',
        'limit',
        'json',
      ]),
      new Option('--output <file>', 'write the CSV to a new file that only you can read').implies({ csv: true }),
    ],
    limit: 100,
    row: personRow,
    none: 'No matching people.',
    instead: ({ csv, output }) => (csv === undefined ? undefined : savePeople(api, output)),
  });

  const action = new Argument(
    '<action>',
    'link, create, retry, ignore or delete; trace shows those that apply, with their effects',
  );
  program
    .command('resolve')
    .description('resolve manually a person that needs a review or has failed')
    .addArgument(kindArgument())
    .argument('<externalId>')
    .addArgument(action.choices(RESOLVE_ACTIONS))
    .option('--user <platformUserId>', 'the user to link to')
    .option('--wait <seconds>', 'how long to wait for the outcome, 0 to 60', waitSeconds, 20)
    .option('--json', 'print what the service answers')
    .addHelpText(
      'after',
      examples('resolve client C-1 retry', 'resolve provider P-1 link --user 6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b'),
    )
    .action(async (kind: PersonKind, id: string, action: string, { user, wait, json }: ResolveOptions) => {
      if (action === 'link' && user === undefined) {
        throw new CliFault('Pass --user with the id of the platform user to link to.');
      }
      const path = `/v1/${kind}s/${encodeURIComponent(id)}/resolve`;
      printAnswer(await api.post<PersonResponse>(path, { action, platformUserId: user }, { wait }), json, personLines);
    });

  program
    .command('resolve-all')
    .description('resolve everyone who needs a review or has failed for one reason; they are counted first')
    .addArgument(new Argument('<code>', 'the reason, as people shows it').choices(UNSETTLED_CODES))
    .addArgument(new Argument('<action>', 'create, retry or ignore').choices(BULK_ACTIONS))
    .addOption(new Option('--kind <kind>', 'only these').choices(KINDS))
    .option('--yes', 'do not ask for confirmation; without a terminal and --yes, only count')
    .option('--json', 'print what the service answers; nothing is asked')
    .addHelpText(
      'after',
      examples('resolve-all create-unknown create', 'resolve-all rejected retry --kind client --yes'),
    )
    .action((code: string, action: string, options: SelectionOptions) => resolveAll(api, { code, action }, options));
}

/** Counts the people first, then resolves exactly these; no one if they have changed since. */
async function resolveAll(
  api: Api,
  { code, action }: { code: string; action: string },
  { kind, yes, json }: SelectionOptions,
): Promise<void> {
  const resolve = (more: object) =>
    api.post<ResolveSelectionResponse>('/v1/people/resolve', { code, action, kind, ...more });
  const planned = await resolve({ dryRun: true });
  const { count, plan } = planned;
  if (count === 0) return printAnswer(planned, json, () => `No matching people accept ${action}.`);
  const what = `${counted(count, 'person', 'people')} with ${code}`;
  if (!yes && (json || !(await isConfirmed(`Resolve ${what} with ${action}?`)))) {
    process.exitCode = 2;
    return printAnswer(planned, json, () => `${what} would be resolved with ${action}; to do it, add --yes.`);
  }
  const done = await resolve({ plan });
  if (done.more) process.exitCode = 2;
  printAnswer(
    done,
    json,
    () => `${what} resolved with ${action}.${done.more ? ' There are more: run this again.' : ''}`,
  );
}

/** Reads how long a command waits. @throws {InvalidArgumentError} when that is no number of seconds up to 60 */
export function waitSeconds(text: string): number {
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds <= LONGEST_WAIT)) throw new InvalidArgumentError(`Say whole seconds, 0 to ${LONGEST_WAIT}.`);
  return seconds;
}

async function* peopleOf(
  api: Api,
  { kind, state, email, externalId }: Partial<Record<string, string>>,
): AsyncGenerator<PersonResponse> {
  if (email === undefined && externalId === undefined) {
    for (const each of kind ? [kind] : KINDS) yield* api.all<PersonResponse>(`/v1/${each}s`, { state });
    return;
  }
  const found = await api.post<Page<PersonResponse>>('/v1/people/search', { email, externalId });
  yield* found.items.filter((person) => (!kind || person.kind === kind) && (!state || person.sync.state === state));
}

async function savePeople(api: Api, file: string | undefined): Promise<void> {
  await saveAnswer(await api.send('GET', '/v1/people.csv', undefined, { accept: 'text/csv' }), file);
  if (file !== undefined) console.log(`${file} contains all people with their platform users.`);
}

/** Without names. */
function personRow({ kind, externalId, sync: { state, error }, platformUserId, providers }: PersonResponse) {
  const [reason, listed] = [error?.code, providers?.join('|')];
  const shown = labelOf('personState', state);
  return { kind, 'external id': externalId, state: shown, reason, 'platform user': platformUserId, providers: listed };
}

/** How one person stands, without names. */
function personLines({ kind, externalId, platformUserId, providers, sync }: PersonResponse): string {
  const { notPushable, error } = sync;
  const changed = 'changed here, and the platform has no operation to change it there:';
  return lines(
    `${kind} ${externalId}: ${inSentence(labelOf('personState', sync.state))}${sync.step ? `, next: ${sync.step}` : ''}`,
    platformUserId && `  user on the platform: ${platformUserId}`,
    providers && `  providers: ${providers.join(', ')}`,
    notPushable.length > 0 && `  ${changed} ${notPushable.join(', ')}`,
    error && `  ${error.code}: ${error.message}`,
  );
}
