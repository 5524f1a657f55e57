import type { Command, Option } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/**
 * What may follow each command, by its path, such as `client export`, the program itself being the empty one; and what may
 * follow an option that takes one of some words, by the command's path and the option: `deliveries --state`.
 */
export type Words = Record<string, string[]>;

/** Reads what may follow each command from the commands themselves. */
export function wordsOf(command: Command, path = ''): Words {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const options = help.visibleOptions(command).flatMap(({ long }: Option) => long ?? []);
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const at = (place: string) => (path ? `${path} ${place}` : place);
  const words: Words = { [path]: [...commands.map((each) => each.name()), ...choices, ...options] };
  for (const { long, argChoices } of help.visibleOptions(command)) {
    if (long && argChoices) words[at(long)] = argChoices;
  }
  for (const each of commands) Object.assign(words, wordsOf(each, at(each.name())));
  return words;
}

/** What follows the words before the cursor, for shells that know `local`. */
const OFFER = `_notebridge_offer() {
  local place='' word next=''
  for word in "$@"; do
    next="\${place:+$place }$word"
    [ "\${word#-}" = "$word" ] && [ -n "$(_notebridge_words "$next")" ] && place="$next"
  done
  [ -n "$(_notebridge_words "$next")" ] && place="$next"
  _notebridge_words "$place"
}`;

const BASH = `_notebridge() {
  local offered="$(_notebridge_offer "\${COMP_WORDS[@]:1:COMP_CWORD-1}")"
  COMPREPLY=($(compgen -W "$offered" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _notebridge notebridge`;

/** Files where nothing fits, as bash does it. */
const ZSH = `_notebridge() {
  compadd -- \${=$(_notebridge_offer "\${(@)words[2,CURRENT-1]}")} || _files
}
(( $+functions[compdef] )) || { autoload -U compinit && compinit }
compdef _notebridge notebridge`;

/** The script that a shell reads to complete the words of `notebridge`. */
export function completionScript(shell: Shell, words: Words): string {
  if (shell === 'fish') return fishScript(words);
  const cases = Object.entries(words).map(([path, each]) => `    '${path}') echo '${each.join(' ')}' ;;`);
  return `_notebridge_words() {
  case "$1" in
${cases.join('\n')}
  esac
}
${OFFER}
${shell === 'bash' ? BASH : ZSH}`;
}

function fishScript(words: Words): string {
  const known = Object.keys(words).filter((path) => path !== '' && !path.includes('--'));
  const lines = Object.entries(words).map(([place, each]) => {
    const [path = '', option] = place.split(/ ?--/);
    const offered = `-a '${each.join(' ')}'`;
    // Files are offered besides where nothing but options may follow: those may be followed by one.
    const kind = option ? `-x -l ${option} ` : each.every((word) => word.startsWith('-')) ? '' : '-f ';
    return `complete -c notebridge -n "__notebridge_at '${path}'" ${kind}${offered}`;
  });
  return `function __notebridge_at
  set -l path ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim -- "$path $word")
    contains -- "$next" ${known.map((path) => `'${path}'`).join(' ')}; and set path $next
  end
  test "$path" = "$argv[1]"
end
${lines.join('\n')}`;
}
