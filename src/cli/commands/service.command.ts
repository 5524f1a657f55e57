import { type Command, Option } from 'commander';
import { SCOPES } from '../../access/identity/scopes.js';
import type { ApiKeyResponse, NewApiKeyResponse } from '../../access/keys/api-keys.dto.js';
import type { CapabilityPageResponse } from '../../operations/capabilities.dto.js';
import type { Api } from '../api/api.js';
import { printAnswer, printList } from '../output/print.js';

/** `notebridge capabilities` and `notebridge keys …` */
export function addServiceCommands(program: Command, api: Api): void {
  program
    .command('capabilities')
    .description('say what the service can do, and which settings the rest lacks')
    .option('--json', 'print what the service answers')
    .action(async ({ json }: { json?: boolean }) =>
      printAnswer(await api.get<CapabilityPageResponse>('/v1/capabilities'), json, ({ items }) =>
        items.map(({ name, on, missing }) => (on ? `✓ ${name}` : `✗ ${name}: set ${missing.join(', ')}`)).join('\n'),
      ),
    );

  const keys = program.command('keys').description('API keys of this service');

  keys
    .command('list', { isDefault: true })
    .description('list them, revoked ones too; a key itself is shown only once, when it is made')
    .action(() =>
      printList(api.all<ApiKeyResponse>('/v1/api-keys'), {
        row: ({ id, name, prefix, createdAt: made, revokedAt: revoked, scopes }) => {
          return { id, name, key: `${prefix}…`, made, revoked, scopes: scopes.join(' ') };
        },
        none: 'No key was made yet; ADMIN_API_KEY is not in this list.',
      }),
    );

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
      await api.send('DELETE', `/v1/api-keys/${encodeURIComponent(id)}`);
      console.log('Revoked.');
    });
}
