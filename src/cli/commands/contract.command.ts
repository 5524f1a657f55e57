import { type Command, Option } from 'commander';
import { READ_OPERATIONS } from '../../platform/contract/operations.js';
import { examples } from '../output/help.js';

/** `notebridge contract`: tests the contract file before it is trusted. Needs no running service. */
export function addContractCommands(program: Command): void {
  const contract = program.command('contract').description('test the contract file');
  contract
    .command('check')
    .argument('[file]', 'the contract file; defaults to PLATFORM_CONTRACT')
    .description('find faults in the contract file, and list its capabilities; needs no running service')
    .option('--sample <answer>', 'also apply its pointers to this file with an answer of the platform, as JSON')
    .addOption(new Option('--operation <name>', 'the operation that returned --sample').choices(READ_OPERATIONS))
    .option('--json', 'print one JSON object')
    .addHelpText('after', examples('contract check', 'contract check --sample answer.json --operation createClient'))
    .action(async (file, options) => (await import('../contract/check.js')).check(file, options));
  contract
    .command('probe')
    .description('look up an unused email; show the request, the types in the answer, and the values read')
    .option('--json', 'print one JSON object')
    .addHelpText('after', `\nThe call counts towards the platform's limit.\n${examples('contract probe')}`)
    .action(async (options) => (await import('../contract/probe.js')).probe(options));
}
