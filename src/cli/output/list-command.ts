import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Api } from '../api/api.js';
import { isDefault } from './help.js';
import { momentOption } from './moment-option.js';
import { printList, type Row } from './print.js';

/** The values of options by the names of their parameters. */
type Query = Partial<Record<string, string>>;

/** A command that prints a list of the service, page by page. */
interface ListCommand<T> {
  /** The path of the list, or a function of options and arguments that returns the path or the items. */
  from: string | ((query: Query, ...args: string[]) => string | AsyncIterable<T>);
  /** Options in addition to --json and --limit; their values go into the query. */
  options?: Option[];
  /** Parameters whose names differ from their options. */
  parameters?: Record<string, string>;
  /** Default of --limit; as JSON all items are printed. */
  limit: number;
  /** Without names and texts of the platform, which may be personal. */
  row(item: T): Row;
  /** Printed if the list is empty. */
  none: string;
  /** Does what the options request instead of a list, or returns undefined. */
  instead?(query: Query, ...args: string[]): Promise<void> | undefined;
}

/** Gives a command the options and the action of a list. */
export function listing<T>(
  command: Command,
  api: Api,
  { from, options = [], parameters = {}, limit, row, none, instead }: ListCommand<T>,
): void {
  for (const option of options) command.addOption(option);
  // A group passes an unknown word to its default command.
  if (isDefault(command) && command.registeredArguments.length === 0)
    command.allowExcessArguments().hook('preAction', () => {
      if (command.args.length > 0) command.parent?.error(`error: unknown command '${command.args[0]}'`);
    });
  command
    .option('--limit <count>', 'show at most this many, or "all"; with --json, all by default', countIn, limit)
    .option('--json', 'print one JSON object per line')
    .action(async (...given: unknown[]) => {
      const args = given.filter((each) => typeof each === 'string');
      const { json, limit: max, ...values } = command.opts<{ json?: boolean; limit: number } & Query>();
      const named = Object.entries(values).map(([name, value]) => [parameters[name] ?? name, value]);
      const query: Query = Object.fromEntries(named);
      const other = instead?.(query, ...args);
      if (other) return other;
      const source = typeof from === 'string' ? from : from(query, ...args);
      const items = typeof source === 'string' ? api.all<T>(source, query) : source;
      const isWhole = json && command.getOptionValueSource('limit') === 'default';
      let isCut = false;
      const shown = firstOf(items, isWhole ? Number.POSITIVE_INFINITY : max, () => {
        isCut = true;
      });
      await printList(shown, { row, none, json });
      if (isCut && !json) console.error(`Only the first ${max} are shown. To show all: --limit all`);
    });
}

/** Options that take one value each, by their flags. */
export const valueOptions = (options: Record<string, string>): Option[] =>
  Object.entries(options).map(([flags, about]) =>
    flags.endsWith('<moment>') ? momentOption(flags, about) : new Option(flags, about),
  );

/** Reads --limit. @throws {InvalidArgumentError} if it is neither a count nor `all` */
function countIn(text: string): number {
  if (text === 'all') return Number.POSITIVE_INFINITY;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of at least 1, or all.');
  return Number(text);
}

/** The first items of a list. @param onMore called if there are more */
async function* firstOf<T>(items: AsyncIterable<T>, count: number, onMore: () => void): AsyncGenerator<T> {
  let shown = 0;
  for await (const item of items) {
    if (shown === count) return onMore();
    shown += 1;
    yield item;
  }
}
