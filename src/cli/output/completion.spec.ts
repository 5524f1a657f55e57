import { spawnSync } from 'node:child_process';
import { Argument, Command, Option } from 'commander';
import { completionScript, SHELLS, wordsOf } from './completion.js';
import { HELP_OF_GROUPS } from './help.js';

const program = new Command('notebridge').version('1.0.0').configureHelp(HELP_OF_GROUPS);
program.command('status').option('--json', 'print it as JSON');
program
  .command('people')
  .addOption(new Option('--kind <kind>').choices(['provider', 'client']))
  .option('--json');
program.command('trace').addArgument(new Argument('<kind>').choices(['provider', 'client']));
program.command('client').command('export').argument('<externalId>').option('--output <file>', 'write it there');
const deliveries = program.command('deliveries');
deliveries
  .command('list', { isDefault: true })
  .addOption(new Option('--state <state>').choices(['dead', 'failed']))
  .option('--json');
deliveries.command('replay').option('--yes');
const words = wordsOf(program);

test('what may follow is read from the commands', () => {
  expect(words['']).toEqual(expect.arrayContaining(['status', 'trace', 'client', '--version', '--help']));
  expect(words.status).toEqual(['--json', '--help']);
  expect(words.trace).toEqual(['provider', 'client', '--help']);
  expect(words['people --kind']).toEqual(['provider', 'client']);
  expect(words['client export']).toEqual(['--output', '--help']);
  expect(words.deliveries).toEqual(['list', 'replay', 'help', '--state', '--json', '--help']);
});

/** What each shell offers for the last word of a line: by its own engine, or by what stands in for it without a terminal. */
const ASK: Record<(typeof SHELLS)[number], { args: string[]; ask: (line: string[]) => string }> = {
  bash: {
    args: ['--norc', '-u'],
    ask: (line) => `COMP_WORDS=(${quoted(line)}); COMP_CWORD=${line.length - 1}
_notebridge
printf '%s\\n' "\${COMPREPLY[@]}"`,
  },
  zsh: {
    args: ['-f'],
    // As compadd does it, which works in a terminal alone: what fits the word at the cursor, or a failure.
    ask: (line) => `_files() { }
compadd() { shift; local fit=("\${(@M)@:#\${words[CURRENT]}*}"); (( $#fit )) && print -rl -- $fit }
words=(${quoted(line)}); CURRENT=${line.length}
_notebridge`,
  },
  fish: { args: ['--no-config'], ask: (line) => `complete -C '${line.join(' ')}'` },
};

const quoted = (line: string[]) => line.map((word) => `'${word}'`).join(' ');

function run(shell: string, args: string[], script: string): string[] {
  const { status, stdout, stderr } = spawnSync(shell, [...args, '-c', script], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  return stdout.split('\n').filter((line) => line !== '');
}

describe.each(SHELLS)('%s', (shell) => {
  const isInstalled = spawnSync(shell, ['-c', ':']).status === 0;
  const { args, ask } = ASK[shell];
  const offered = (...line: string[]) => run(shell, args, `${completionScript(shell, words)}\n${ask(line)}`);
  const tried = isInstalled ? test : test.skip;

  tried.each([
    [['notebridge', 'st'], ['status']],
    [
      ['notebridge', 'status', '--'],
      ['--json', '--help'],
    ],
    [['notebridge', 'trace', 'p'], ['provider']],
    [
      ['notebridge', 'people', '--kind', ''],
      ['provider', 'client'],
    ],
    [['notebridge', 'people', '--json', '--kind', 'c'], ['client']],
    [['notebridge', 'people', '--kind', 'client', '--j'], ['--json']],
    [['notebridge', 'client', 'e'], ['export']],
    [['notebridge', 'client', 'export', 'c-1', '--o'], ['--output']],
    [['notebridge', 'client', 'export', 'status', '--j'], []],
    [['notebridge', 'deliveries', 'r'], ['replay']],
    [['notebridge', 'deliveries', '--s'], ['--state']],
    [['notebridge', 'deliveries', '--state', 'd'], ['dead']],
    [['notebridge', 'deliveries', 'list', '--state', 'd'], ['dead']],
    [
      ['notebridge', 'deliveries', 'replay', '--'],
      ['--yes', '--help'],
    ],
  ])(isInstalled ? 'completes %j' : 'is not installed here, so it is not tried with %j', (line, words) =>
    expect(offered(...line).sort()).toEqual(words.sort()),
  );
});
