import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import type {
  AttemptResponse,
  NewSubscriptionResponse,
  PushAnswerResponse,
  SubscriptionResponse,
} from '../../subscriptions/subscriptions.dto.js';
import { inSentence, labelOf } from '../../words/words.js';
import type { Api } from '../api/api.js';
import { isConfirmed } from '../output/confirm.js';
import { examples } from '../output/help.js';
import { listing } from '../output/list-command.js';
import { printAnswer } from '../output/print.js';

const SUBSCRIPTIONS = '/v1/subscriptions';
const JSON_ANSWER = ['--json', "print the service's answer"] as const;
const ID = '7b0f5a3e-0000-4000-8000-000000000000';
const pathOf = (id: string): string => `${SUBSCRIPTIONS}/${encodeURIComponent(id)}`;
const after = (otherwise: string) =>
  new Option(
    '--after <cursor>',
    `push the events after this cursor; 0: all events, latest: only new ones; ${otherwise}`,
  );

const types = (what: string) => new Option('--types <types>', `${what}, separated by commas`).argParser(splitTypes);

/** Reads `session.created,session.failed`; the service says which type is unknown. */
const splitTypes = (text: string): string[] => text.split(',').map((type) => type.trim());

interface SetOptions {
  url: string;
  types: string[];
  header: string[];
  /** False with --no-headers. */
  headers: boolean;
}

/** As curl takes headers. */
const header = () =>
  new Option(
    '-H, --header <header>',
    "send this header, such as 'X-Key: value', with each push; @file reads one on each line, @- those of the input; can be repeated",
  ).argParser((text, before: string[] = []) => [...before, text]);

/** Reads `Name: value`, and such lines of files. Faults do not repeat a text, which may be secret, as commander does. */
function headersIn(given: readonly string[]): Record<string, string> {
  const read = new Map<string, string>();
  const lines = given.flatMap((text) => (text.startsWith('@') ? linesOf(text.slice(1)) : [text]));
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]+):(.*)$/s.exec(line) ?? [];
    if (value.trim() === '') throw new Error('A --header must be a name, a colon and a value.');
    if (read.has(name)) throw new Error(`The header ${name} is given twice.`);
    read.set(name, value.trim());
  }
  return Object.fromEntries(read);
}

const linesOf = (file: string): string[] =>
  readFileSync(file === '-' ? 0 : file, 'utf8')
    .split(/\r?\n/)
    .filter((line) => line !== '');

interface JsonOption {
  json?: boolean;
}

/** `notebridge subscriptions …` */
export function addSubscriptionCommands(program: Command, api: Api): void {
  const subscriptions = program
    .command('subscriptions')
    .description("manage the EHR's endpoints, to which notebridge pushes events");
  const list = subscriptions
    .command('list', { isDefault: true })
    .description("list subscriptions with the endpoint's last answer")
    .addHelpText('after', examples('subscriptions'));
  listing<SubscriptionResponse>(list, api, {
    from: SUBSCRIPTIONS,
    limit: 50,
    row: (subscription) => {
      const { id, url, state, behind, next, lastAnswer, nextAttemptAt } = subscription;
      const [waits, answer] = [next && `${next.type} ${next.cursor}`, lastAnswer && inWords(lastAnswer)];
      return {
        id,
        endpoint: addressOf(url),
        state: labelOf('subscriptionState', state),
        behind,
        waits,
        'last answer': answer,
        'next attempt': nextAttemptAt,
      };
    },
    none: 'There are no subscriptions: the EHR has to read the feed.',
  });

  subscriptions
    .command('create')
    .description('push events to an endpoint, and show its secret once')
    .argument('<url>', 'an https URL, or http to this machine')
    .addOption(types('only events of these types'))
    .addOption(header())
    .option('--description <text>', 'purpose, without personal data')
    .addOption(after('latest by default'))
    .option(...JSON_ANSWER)
    .addHelpText(
      'after',
      examples('subscriptions create https://ehr.example/hook --types session.notes-ready,session.failed'),
    )
    .action(async (url: string, { json, header: given, ...options }: JsonOption & Partial<SetOptions>) => {
      const headers = given && headersIn(given);
      const made = await api.post<NewSubscriptionResponse>(SUBSCRIPTIONS, { ...options, url, headers });
      printAnswer(made, json, ({ id, secret }) => `${id}\n${secret}`);
    });

  subscriptions
    .command('test')
    .description('send a test event now, and show the answer; exits 2 if the endpoint does not accept it')
    .argument('<id>')
    .option(...JSON_ANSWER)
    .addHelpText('after', examples(`subscriptions test ${ID}`))
    .action(async (id: string, { json }: JsonOption) => {
      const answer = await api.post<PushAnswerResponse>(`${pathOf(id)}/test`);
      if (answer.fault !== null) process.exitCode = 2;
      printAnswer(answer, json, inWords);
    });

  const attempts = subscriptions
    .command('attempts')
    .description('list the last 50 attempts to push an event, newest first')
    .argument('<id>')
    .addHelpText('after', examples(`subscriptions attempts ${ID}`));
  listing<AttemptResponse>(attempts, api, {
    from: (_query, id = '') => `${pathOf(id)}/attempts`,
    limit: 50,
    row: (attempt) => {
      const { at, cursor, type, durationMs } = attempt;
      return {
        at,
        event: cursor === null ? 'none was read' : `${type} ${cursor}`,
        outcome: inWords(attempt),
        ms: durationMs,
      };
    },
    none: 'No event was pushed yet.',
  });

  subscriptions
    .command('set')
    .description('change the URL, the types or the headers of a subscription')
    .argument('<id>')
    .option('--url <url>', 'an https URL, or http to this machine')
    .addOption(types('only events of these types, or "all"'))
    .addOption(header())
    .option('--no-headers', 'send no headers of your own; without it, --header replaces all of them')
    .option(...JSON_ANSWER)
    .addHelpText(
      'after',
      examples(
        `subscriptions set ${ID} --url https://ehr.example/hook`,
        `subscriptions set ${ID} --header @headers.txt`,
      ),
    )
    .action(async (id: string, { json, ...options }: JsonOption & Partial<SetOptions>) => {
      const { url, types: some, header: given, headers } = options;
      const body = {
        url,
        ...(some && { types: String(some) === 'all' ? null : some }),
        headers: given ? headersIn(given) : headers === false ? null : undefined,
      };
      printAnswer(await change(api, id, body), json, () => 'Changed.');
    });

  subscriptions
    .command('pause')
    .description('pause pushes; events are kept')
    .argument('<id>')
    .option(...JSON_ANSWER)
    .addHelpText('after', examples(`subscriptions pause ${ID}`))
    .action(async (id: string, { json }: JsonOption) => {
      printAnswer(await change(api, id, { paused: true }), json, () => 'Paused.');
    });

  subscriptions
    .command('resume')
    .description('resume pushes after the last event that the endpoint accepted')
    .argument('<id>')
    .addOption(after('needed only for cursor-expired'))
    .option(...JSON_ANSWER)
    .addHelpText('after', examples(`subscriptions resume ${ID}`, `subscriptions resume ${ID} --after 0`))
    .action(async (id: string, { json, after: cursor }: JsonOption & { after?: string }) => {
      printAnswer(await change(api, id, { paused: false, after: cursor }), json, () => 'Resumed.');
    });

  subscriptions
    .command('skip')
    .description('skip the next event if the endpoint cannot accept it')
    .argument('<id>')
    .argument('<cursor>', 'the cursor of that event, as the list shows it')
    .option(...JSON_ANSWER)
    .addHelpText('after', examples(`subscriptions skip ${ID} 1-42`))
    .action(async (id: string, cursor: string, { json }: JsonOption) => {
      const answer = await api.post<SubscriptionResponse>(`${pathOf(id)}/skip`, { cursor });
      printAnswer(answer, json, () => `Event ${cursor} was skipped.`);
    });

  subscriptions
    .command('rotate-secret')
    .description('create a new secret, and show it once; the old one also signs for 24 hours')
    .argument('<id>')
    .option(...JSON_ANSWER)
    .addHelpText('after', examples(`subscriptions rotate-secret ${ID}`))
    .action(async (id: string, { json }: JsonOption) => {
      const made = await api.post<NewSubscriptionResponse>(`${pathOf(id)}/rotate-secret`);
      printAnswer(made, json, ({ secret }) => secret);
    });

  subscriptions
    .command('delete')
    .description('delete a subscription: its endpoint gets no more events')
    .argument('<id>')
    .option('--yes', 'do not ask for confirmation')
    .option('--json', 'print the result as JSON, without asking for confirmation')
    .addHelpText('after', examples(`subscriptions delete ${ID} --yes`))
    .action(async (id: string, { yes, json }: JsonOption & { yes?: boolean }) => {
      if (!yes && (json || !(await isConfirmed(`Delete subscription ${id}?`)))) {
        process.exitCode = 2;
        return printAnswer({ id, deleted: false }, json, () => 'Nothing was deleted. To delete it, add --yes.');
      }
      await api.send('DELETE', pathOf(id));
      printAnswer({ id, deleted: true }, json, () => 'Deleted.');
    });
}

const change = (api: Api, id: string, body: object): Promise<SubscriptionResponse> =>
  api.send('PATCH', pathOf(id), body).then((answer) => answer.json() as Promise<SubscriptionResponse>);

/** Describes an endpoint's answer: `Accepted (204)`, or `Failed: it answered with an error (500)`. */
const inWords = ({ status, fault }: Pick<PushAnswerResponse, 'status' | 'fault'>): string =>
  fault === null
    ? `Accepted (${status})`
    : `Failed: ${inSentence(labelOf('pushFault', fault))}${status === null ? '' : ` (${status})`}`;

/** Host and path of an endpoint, because its query may hold a token. */
function addressOf(url: string): string {
  if (!URL.canParse(url)) return url;
  const { host, pathname } = new URL(url);
  return host + pathname;
}
