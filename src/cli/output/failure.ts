import type { Command } from 'commander';
import { CliFault } from '../api/cli-fault.js';

/** Whether the answer is wanted as JSON, so that an error is, too; read where the arguments may be what is wrong. */
const isJsonWanted = () => process.argv.includes('--json');

function printFailure(detail: string, status?: number): void {
  const problem = { type: 'urn:notebridge:problem:command-failed', detail, status };
  console.error(isJsonWanted() ? JSON.stringify(problem) : detail);
}

/** Has a program say what is wrong with its arguments and its output; call it before its own commands are added. */
export function withFaults(command: Command): Command {
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    // A reader of the output may have had enough of it, such as `head`.
    if (code !== 'EPIPE') failed(new CliFault(`The output can not be written (${code}); what is there is not whole.`));
    process.exit();
  });
  if (!isJsonWanted()) return command.showHelpAfterError('(see --help)');
  return command.configureOutput({ outputError: (text) => printFailure(text.replace(/^error: /, '').trim()) });
}

/** Prints why a command failed, and sets its exit code. */
export function failed(error: unknown): void {
  const detail = error instanceof Error ? error.message : 'The command failed without a reason.';
  const fault = error instanceof CliFault ? error : undefined;
  printFailure(detail, fault?.status);
  process.exitCode = fault?.exitCode ?? 1;
}
