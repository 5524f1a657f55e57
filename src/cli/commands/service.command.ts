import { type Command, Option } from 'commander';
import { SCOPES } from '../../access/identity/scopes.js';
import type { ApiKeyResponse, NewApiKeyResponse } from '../../access/keys/api-keys.dto.js';
import type { Capability } from '../../platform/contract/capabilities.js';
import type { Api, Page } from '../api/api.js';
import { table } from '../output/table.js';

/** `notebridge capabilities` */
export function addCapabilitiesCommand(program: Command, api: Api): void {
  program
    .command('capabilities')
    .description('say what the service can do, and which settings the rest lacks')
    .option('--json', 'print what the service answers')
    .action(async ({ json }: { json?: boolean }) => {
      const page = await api.get<Page<Capability>>('/v1/capabilities');
      console.log(json ? JSON.stringify(page, null, 2) : page.items.map(capabilityLine).join('\n'));
    });
}

/** One capability with what it lacks. */
export function capabilityLine({ name, on, missing }: Capability): string {
  return on ? `✓ ${name}` : `✗ ${name}: set ${missing.join(', ')}`;
}

/** `notebridge keys …` */
export function addKeysCommands(program: Command, api: Api): void {
  const keys = program.command('keys').description('API keys of this service');

  keys
    .command('list', { isDefault: true })
    .description('list them, revoked ones too; a key itself is shown only once, when it is made')
    .action(async () => {
      const rows: unknown[][] = [];
      for await (const key of api.all<ApiKeyResponse>('/v1/api-keys')) {
        rows.push([key.id, key.name, `${key.prefix}…`, key.createdAt, key.revokedAt, key.scopes.join(' ')]);
      }
      if (rows.length === 0) return console.log('No key was made yet; ADMIN_API_KEY is not in this list.');
      console.log(table(['id', 'name', 'key', 'made', 'revoked', 'scopes'], rows));
    });

  keys
    .command('create')
    .description('make a key and show it this once')
    .argument('<name>', 'what it is for; not a person')
    .addOption(new Option('--scopes <scopes...>', 'what it may do').choices(SCOPES).makeOptionMandatory())
    .action(async (name: string, { scopes }: { scopes: string[] }) => {
      const made = await api.post<NewApiKeyResponse>('/v1/api-keys', { name, scopes });
      console.log(made.key);
    });

  keys
    .command('revoke')
    .description('revoke a key, at once')
    .argument('<id>')
    .action(async (id: string) => {
      await api.delete(`/v1/api-keys/${id}`);
      console.log('Revoked.');
    });
}
