import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Api } from '../api/api.js';
import { momentOption } from './moment-option.js';
import { printList, type Row } from './print.js';

/** The values of options by the names of their parameters. */
type Query = Partial<Record<string, string>>;

/** A command that prints a list of the service, page by page. */
interface ListCommand<T> {
  /** Its path below /v1, or what its options and arguments make of it: a path, or the items themselves. */
  from: string | ((query: Query, ...args: string[]) => string | AsyncIterable<T>);
  /** Options beside --json and --limit; their values go into the query. */
  options?: Option[];
  /** The names of those parameters that are not called as their option is. */
  parameters?: Record<string, string>;
  /** Items that are shown unless --limit says otherwise; as JSON all are. */
  limit: number;
  /** Without names and without what the platform said: both may be personal. */
  row(item: T): Row;
  /** Printed in place of a list without items. */
  none: string;
  /** What the options ask for in place of a list. */
  instead?(query: Query, ...args: string[]): Promise<void> | undefined;
}

/** Gives a command the options and the action of a list. */
export function listing<T>(
  command: Command,
  api: Api,
  { from, options = [], parameters = {}, limit, row, none, instead }: ListCommand<T>,
): void {
  for (const option of options) command.addOption(option);
  command
    .option('--limit <count>', 'show so many at most, or all; with --json all unless told', countIn, limit)
    .option('--json', 'print one JSON object a line')
    .action(async (...given: unknown[]) => {
      const args = given.filter((each) => typeof each === 'string');
      const { json, limit: most, ...values } = command.opts<{ json?: boolean; limit: number } & Query>();
      const named = Object.entries(values).map(([name, value]) => [parameters[name] ?? name, value]);
      const query: Query = Object.fromEntries(named);
      const other = instead?.(query, ...args);
      if (other) return other;
      const source = typeof from === 'string' ? from : from(query, ...args);
      const items = typeof source === 'string' ? api.all<T>(source, query) : source;
      const isWhole = json && command.getOptionValueSource('limit') === 'default';
      const shown = new First(items, isWhole ? Number.POSITIVE_INFINITY : most);
      await printList(shown, { row, none, json });
      if (shown.isCut && !json) console.error(`There are more than these ${most}: --limit all shows every one.`);
    });
}

/** Options that take one value each, by their flags. */
export const valued = (options: Record<string, string>): Option[] =>
  Object.entries(options).map(([flags, about]) =>
    flags.endsWith('<moment>') ? momentOption(flags, about) : new Option(flags, about),
  );

/** Reads how many items are shown. @throws {InvalidArgumentError} when that is neither a count nor `all` */
function countIn(text: string): number {
  if (text === 'all') return Number.POSITIVE_INFINITY;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Say a number from 1 on, or all.');
  return Number(text);
}

/** The first items of a list. */
class First<T> {
  /** Whether there were more. */
  isCut = false;

  constructor(
    private readonly items: AsyncIterable<T>,
    private readonly most: number,
  ) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    let shown = 0;
    for await (const item of this.items) {
      this.isCut = shown === this.most;
      if (this.isCut) return;
      shown += 1;
      yield item;
    }
  }
}
