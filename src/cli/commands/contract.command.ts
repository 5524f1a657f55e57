import { type Command, Option } from 'commander';
import { OPERATION_NAMES } from '../../platform/contract/operations.js';
import { examples } from '../output/help.js';

/** `notebridge contract`: tests the contract file before the service uses it. Needs no running service. */
export function addContractCommands(program: Command): void {
  const contract = program
    .command('contract')
    .description('test the contract file (PLATFORM_CONTRACT), which describes what the platform leaves undefined');
  contract
    .command('check')
    .argument('[file]', 'the contract file; PLATFORM_CONTRACT by default')
    .description(
      'find faults in the contract file, and list the capabilities that it turns on; needs no running service',
    )
    .option(
      '--sample <answer>',
      'also show what the pointers of the contract file find in this saved answer (JSON) of the platform',
    )
    .addOption(new Option('--operation <name>', 'the operation that --sample is an answer to').choices(OPERATION_NAMES))
    .option('--json', 'print one JSON object')
    .addHelpText('after', examples('contract check', 'contract check --sample answer.json --operation createClient'))
    .action(async (file, options) => (await import('../contract/check.js')).check(file, options));
  contract
    .command('probe')
    .description(
      'look up an email that no one has on the platform; show the request, the types in the answer, and what the service reads',
    )
    .option('--json', 'print one JSON object')
    .addHelpText('after', `\nThe call counts towards the platform's limit.\n${examples('contract probe')}`)
    .action(async (options) => (await import('../contract/probe.js')).probe(options));
}
