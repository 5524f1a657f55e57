import type { Command } from 'commander';
import { CliFault } from '../api/cli-fault.js';

/** True if answers and errors are printed as JSON. Read from the arguments, because parsing them may fail. */
const isJsonWanted = () => process.argv.includes('--json');

function printFailure(detail: string, answer?: CliFault['answer']): void {
  const problem = { ...answer, type: answer?.type ?? 'urn:notebridge:problem:command-failed', detail };
  console.error(isJsonWanted() ? JSON.stringify(problem) : detail);
}

/** Reports faults of a program's arguments and output; call it before commands are added, which inherit it. */
export function configureErrors(command: Command): Command {
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    // A reader such as `head` may close the pipe early.
    if (code !== 'EPIPE') reportFailure(new CliFault(`The output cannot be written (${code}), so it is incomplete.`));
    process.exit();
  });
  if (!isJsonWanted()) return command.showHelpAfterError('(see --help)');
  return command.configureOutput({ outputError: (text) => printFailure(text.replace(/^error: /, '').trim()) });
}

/** Prints why a command failed, and sets its exit code. */
export function reportFailure(error: unknown): void {
  const detail = error instanceof Error ? error.message : 'The command failed without a reason.';
  const fault = error instanceof CliFault ? error : undefined;
  printFailure(detail, fault?.answer);
  process.exitCode = fault?.exitCode ?? 1;
}
