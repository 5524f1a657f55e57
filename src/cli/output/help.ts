import { type Command, Help } from 'commander';

/** What every command's help ends with. */
export const EXIT_CODES = `
Ends with 0 when it is done, 1 on an error, 2 when something needs somebody, 130 when it was stopped (Ctrl-C).`;

/** Commands as a help shows them. @param lines without `npx notebridge` */
export function examples(...lines: string[]): string {
  return ['', lines.length === 1 ? 'Example:' : 'Examples:', ...lines.map((line) => `  npx notebridge ${line}`)].join(
    '\n',
  );
}

/** A group shows the options of the command that is meant where none of it is named. */
export const HELP_OF_GROUPS: Partial<Help> = {
  visibleOptions(command) {
    const shown = (each: Command) => Help.prototype.visibleOptions.call(this, each);
    const own = shown(command);
    const ofDefault = command.commands.filter(isDefault).flatMap(shown);
    return [...ofDefault.filter(({ long }) => !own.some((option) => option.long === long)), ...own];
  },
  subcommandDescription(command) {
    return command.summary() || command.description() + (isDefault(command) ? '; so it is without a command' : '');
  },
};

/** Commander keeps to itself which command of a group is its default. */
const isDefault = (command: Command): boolean =>
  command.parent !== null && Reflect.get(command.parent, '_defaultCommandName') === command.name();
