import { Command } from 'commander';
import { Api } from '../api/api.js';
import { addCommands } from './commands.js';

function commandsOf(command: Command): Command[] {
  return command.commands.length > 0 ? command.commands.flatMap(commandsOf) : [command];
}

function helpOf(command: Command): string {
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
  return help;
}

const program = new Command('notebridge');
const api = new Api(() => {
  throw new Error('Help must not connect to the service.');
});
addCommands(program, api);
const commands = commandsOf(program).map(
  (command) => [`${command.parent?.name()} ${command.name()}`, command] as const,
);

test.each(commands)('%s has the option --json, and shows an example', (_, command) => {
  expect(command.options.map(({ long }) => long)).toContain('--json');
  expect(helpOf(command)).toMatch(/\nExamples?:\n {2}npx notebridge /);
});

test.each([
  'people',
  'imports',
  'import-rows',
  'client accounting',
  'sessions',
  'compliance',
  'deliveries',
  'subscriptions',
  'audit',
  'keys',
])('%s has --limit, and prints JSON lines', (path) => {
  let command = program;
  for (const name of path.split(' ')) command = named(command, name);
  if (command.commands.length > 0) command = named(command, path === 'audit' ? 'search' : 'list');
  expect(command.options).toContainEqual(
    expect.objectContaining({ long: '--limit', defaultValue: expect.any(Number) }),
  );
  expect(command.options).toContainEqual(expect.objectContaining({ description: 'print one JSON object per line' }));
});

function named(command: Command, name: string): Command {
  const found = command.commands.find((each) => each.name() === name);
  if (!found) throw new Error(`There is no ${name}.`);
  return found;
}

test.each(['sessions', 'compliance', 'deliveries', 'subscriptions', 'audit', 'keys'])(
  '%s shows the options of its default command',
  (name) => {
    const help = helpOf(named(program, name)).replaceAll(/\s+/g, ' ');
    expect(help).toMatch(/ --limit <count>.* --json .* \(default\)/);
    expect(help.match(/ --help /g)).toHaveLength(1);
  },
);
