import { type Command, Help } from 'commander';

/** The end of every command's help. */
export const EXIT_CODES = `
Exits 0 on success, 1 on an error, 2 if something needs attention, 130 if interrupted (Ctrl-C).`;

/** Commands as a help shows them. @param lines without `npx notebridge` */
export function examples(...lines: string[]): string {
  return ['', lines.length === 1 ? 'Example:' : 'Examples:', ...lines.map((line) => `  npx notebridge ${line}`)].join(
    '\n',
  );
}

/** The help of a group also shows the options of its default command. */
export const HELP_OF_GROUPS: Partial<Help> = {
  visibleOptions(command) {
    const shown = (each: Command) => Help.prototype.visibleOptions.call(this, each);
    const own = shown(command);
    const ofDefault = command.commands.filter(isDefault).flatMap(shown);
    return [...ofDefault.filter(({ long }) => !own.some((option) => option.long === long)), ...own];
  },
  subcommandDescription(command) {
    return command.summary() || command.description() + (isDefault(command) ? ' (default)' : '');
  },
};

/** Commander does not expose which command of a group is its default. */
export const isDefault = (command: Command): boolean =>
  command.parent !== null && Reflect.get(command.parent, '_defaultCommandName') === command.name();
