import type { Command } from 'commander';
import type { Api } from '../api/api.js';
import { addImportCommands } from '../import/import.command.js';
import { HELP_OF_GROUPS } from '../output/help.js';
import { addAuditCommands } from './audit.command.js';
import { addClientCommands } from './client.command.js';
import { addContractCommands } from './contract.command.js';
import { addDeliveryCommands } from './deliveries.command.js';
import { addFindCommand } from './find.command.js';
import { addKeyCommands } from './keys.command.js';
import { addPeopleCommands } from './people.command.js';
import { addRequestCommands } from './requests.command.js';
import { addServiceCommands } from './service.command.js';
import { addSubscriptionCommands } from './subscriptions.command.js';
import { addTraceCommand } from './trace.command.js';

/** Adds all commands, in the order of the help. */
export function addCommands(program: Command, api: Api): void {
  program.configureHelp(HELP_OF_GROUPS);
  addServiceCommands(program, api);
  addContractCommands(program);
  addImportCommands(program, api);
  addPeopleCommands(program, api);
  addFindCommand(program, api);
  addTraceCommand(program, api);
  addClientCommands(program, api);
  addRequestCommands(program, api);
  addDeliveryCommands(program, api);
  addSubscriptionCommands(program, api);
  addAuditCommands(program, api);
  addKeyCommands(program, api);
}
