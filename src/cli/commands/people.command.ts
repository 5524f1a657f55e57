import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import type { Page } from '../../http/request/page.js';
import type { SelectionResponse } from '../../people/api/people.dto.js';
import type { PersonResponse } from '../../people/api/person-view.js';
import { PERSON_STATES, type PersonKind } from '../../people/rules/person.js';
import { UNSETTLED_CODES, UNSETTLED_STATES } from '../../people/rules/person-codes.js';
import { BULK_ACTIONS, type BulkAction, RESOLVE_ACTIONS } from '../../people/rules/resolve-rule.js';
import { inSentence, labelOf, WORDS } from '../../words/words.js';
import type { Api } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { isConfirmed } from '../output/confirm.js';
import { examples } from '../output/help.js';
import { listing } from '../output/list-command.js';
import { counted, lines, printAnswer } from '../output/print.js';
import { saveAnswer } from '../output/save-answer.js';

const KINDS: PersonKind[] = ['provider', 'client'];

/** The service's maximum for `Prefer: wait`. */
const MAX_WAIT_SECONDS = 60;

interface ResolveOptions {
  user?: string;
  wait: number;
  json?: boolean;
}

interface SelectionOptions {
  code: string;
  kind?: PersonKind;
  state?: string;
  yes?: boolean;
  json?: boolean;
}

const kindArgument = () => new Argument('<kind>', 'kind of person').choices(KINDS);

const REASON = 'the reason, as notebridge people shows it';
const onlyKind = () => new Option('--kind <kind>', 'only people of this kind').choices(KINDS);

/** A command that counts people, asks, and changes them. */
const countingFirst = (command: Command): Command =>
  command
    .addOption(onlyKind())
    .option('--yes', 'do not ask for confirmation; without a terminal and --yes, only count')
    .option('--json', "print the service's answer, without asking for confirmation");

/** `notebridge people …`, `resolve` and `resolve-all`. */
export function addPeopleCommands(program: Command, api: Api): void {
  const people = program.command('people').description('list providers and clients, or retry them');
  const list = people
    .command('list', { isDefault: true })
    .description('list providers and clients with their sync state; names only with --json')
    .addHelpText(
      'after',
      examples('people --state needs-review', 'people --external-id C-1', 'people --csv --output people.csv'),
    );
  listing<PersonResponse>(list, api, {
    from: (query) => peopleOf(api, query),
    options: [
      onlyKind(),
      new Option('--state <state>', 'only people in this state').choices(PERSON_STATES),
      new Option('--email <email>', 'find by email').conflicts('externalId'),
      new Option('--external-id <id>', "find by the EHR's id"),
      new Option('--csv', 'print all people with their platform users as CSV for an import').conflicts([
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

  countingFirst(people.command('retry'))
    .description('count all people that need a review or have failed for one reason, ask, and retry them')
    .addOption(new Option('--code <code>', REASON).choices(UNSETTLED_CODES).makeOptionMandatory())
    .addOption(new Option('--state <state>', 'only people in this state').choices(UNSETTLED_STATES))
    .addHelpText('after', examples('people retry --code rejected', 'people retry --code rejected --kind client --yes'))
    .action((options: SelectionOptions) => resolveAll(api, 'retry', options));

  const action = new Argument('<action>', 'what to do; notebridge trace shows which actions apply, with their effects');
  program
    .command('resolve')
    .description('decide how to continue with a person that needs a review or has failed')
    .addArgument(kindArgument())
    .argument('<externalId>', "the EHR's id of the person")
    .addArgument(action.choices(RESOLVE_ACTIONS))
    .option('--user <platformUserId>', 'the user to link to')
    .option('--wait <seconds>', 'how long to wait for the outcome, 0 to 60', waitSeconds, 20)
    .option('--json', "print the service's answer")
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

  countingFirst(program.command('resolve-all'))
    .description('count all people that need a review or have failed for one reason, ask, and resolve them')
    .addArgument(new Argument('<code>', REASON).choices(UNSETTLED_CODES))
    .addArgument(new Argument('<action>', 'what to do with each').choices(BULK_ACTIONS))
    .addHelpText('after', examples('resolve-all create-unknown create', 'resolve-all email-taken ignore --yes'))
    .action((code: string, action: BulkAction, options: SelectionOptions) =>
      resolveAll(api, action, { ...options, code }),
    );
}

/** Says how many people an action changes and how, asks, and changes no more than these. */
async function resolveAll(api: Api, action: BulkAction, options: SelectionOptions): Promise<void> {
  const { code, kind, state, yes, json } = options;
  const resolve = (more: object) =>
    api.post<SelectionResponse>('/v1/people/resolve', { action, code, kind, state, ...more });
  const selected = await resolve({ dryRun: true });
  if (selected.count === 0) return printAnswer(selected, json, () => `No matching people accept ${action}.`);
  const what = ({ count }: SelectionResponse) => `${counted(count, 'person', 'people')} with ${code}`;
  const { label, hint } = WORDS.resolveAction[action];
  const done = action === 'retry' ? 'retried' : `resolved with ${action}`;
  if (!yes && (json || !(await isConfirmed(`${hint}\n${label} ${what(selected)}?`)))) {
    process.exitCode = 2;
    return printAnswer(selected, json, () => `${what(selected)} would be ${done}. To do it, add --yes.`);
  }
  printAnswer(await resolve({ count: selected.count }), json, (changed) => `${what(changed)} ${done}.`);
}

/** Reads how long a command waits. @throws {InvalidArgumentError} unless it is a whole number of seconds up to 60 */
export function waitSeconds(text: string): number {
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds <= MAX_WAIT_SECONDS))
    throw new InvalidArgumentError(`It must be a whole number of seconds, 0 to ${MAX_WAIT_SECONDS}.`);
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

/** The sync state of one person, without names. */
function personLines({ kind, externalId, platformUserId, providers, sync }: PersonResponse): string {
  const { notPushable, error } = sync;
  const changed = 'changed, but the platform has no operation for it:';
  return lines(
    `${kind} ${externalId}: ${inSentence(labelOf('personState', sync.state))}${sync.step ? `, next: ${sync.step}` : ''}`,
    platformUserId && `  platform user: ${platformUserId}`,
    providers && `  providers: ${providers.join(', ')}`,
    notPushable.length > 0 && `  ${changed} ${notPushable.join(', ')}`,
    error && `  ${error.code}: ${error.message}`,
  );
}
