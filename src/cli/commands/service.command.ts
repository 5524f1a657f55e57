import { type Command, Option } from 'commander';
import { SCOPES } from '../../access/identity/scope.js';
import type { ApiKeyResponse, NewApiKeyResponse } from '../../access/keys/api-keys.dto.js';
import type { Page } from '../../http/request/page.js';
import type { CapabilityPageResponse } from '../../operations/capabilities.dto.js';
import type { DeliveryResponse, ReplayResponse } from '../../webhooks/admin/deliveries.dto.js';
import { type Api, withQuery } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { counted, printAnswer, printList, table } from '../output/print.js';

/** `notebridge capabilities`, `audit …`, `keys …` and `deliveries …` */
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
  program
    .command('audit')
    .description('the trail of who did and who saw what')
    .executableDir(__dirname)
    .command('verify', 'find what was changed, removed or inserted in it', { executableFile: 'audit-verify.js' });
  addKeyCommands(program.command('keys').description('API keys of this service, and the keys that seal its data'), api);
  addDeliveryCommands(program.command('deliveries').description('webhooks that the platform delivered'), api);
}

function addKeyCommands(keys: Command, api: Api): void {
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
    .action(async (name: string, { scopes }: { scopes: string[] }) =>
      console.log((await api.post<NewApiKeyResponse>('/v1/api-keys', { name, scopes })).key),
    );

  keys
    .command('revoke <id>')
    .description('revoke a key, at once')
    .action(async (id: string) => {
      await api.send('DELETE', `/v1/api-keys/${encodeURIComponent(id)}`);
      console.log('Revoked.');
    });

  keys
    .executableDir(__dirname)
    .command(
      'rotate-data',
      'seal all data anew with the first key of DATA_KEYS, and say which keys nothing uses any more',
      { executableFile: 'rotate-data.js' },
    );
}

const DELIVERIES = '/v1/webhook-deliveries';
const NO_DELIVERIES = 'There are no such deliveries.';

function addDeliveryCommands(deliveries: Command, api: Api): void {
  const states = ['received', 'processed', 'ignored', 'not-understood', 'failed', 'dead'];
  const stateOption = () => new Option('--state <state>', 'only these').choices(states);

  deliveries
    .command('list', { isDefault: true })
    .description('list the latest 50')
    .addOption(stateOption())
    .option('--json', 'print what the service answers')
    .action(async ({ state, json }: { state?: string; json?: boolean }) =>
      printAnswer(await api.get<Page<DeliveryResponse>>(withQuery(DELIVERIES, { state })), json, ({ items }) =>
        items.length > 0 ? table(items.map(deliveryRow)) : NO_DELIVERIES,
      ),
    );

  deliveries
    .command('replay [id]')
    .description('have one delivery processed again, or all of a state')
    .addOption(stateOption())
    .option('--yes', 'do it; without this the selection is only counted')
    .action(async (id: string | undefined, { state, yes }: { state?: string; yes?: boolean }) => {
      if (!id) return replayAll(api, state, yes);
      await api.post(`${DELIVERIES}/${encodeURIComponent(id)}/replay`);
      console.log(`Delivery ${id} is processed again.`);
    });

  deliveries
    .command('dismiss <id>')
    .description('end the wait of a delivery that was not understood')
    .action(async (id: string) => {
      await api.post(`${DELIVERIES}/${encodeURIComponent(id)}/dismiss`);
      console.log(`Delivery ${id} is dismissed.`);
    });
}

function deliveryRow({ id, receivedAt, eventType, state, attempts, error }: DeliveryResponse) {
  return { id, received: receivedAt, event: eventType, state, attempts, why: error?.message };
}

async function replayAll(api: Api, state: string | undefined, sure = false): Promise<void> {
  if (!state) throw new CliFault('Say which: an id, or --state dead.');
  const { count, plan } = await api.post<ReplayResponse>(`${DELIVERIES}/replay`, { state, dryRun: true });
  if (count === 0) return console.log(NO_DELIVERIES);
  const what = counted(count, 'delivery', 'deliveries');
  if (!sure) return console.log(`${what} would be processed again; to do it, add --yes.`);
  await api.post(`${DELIVERIES}/replay`, { state, plan });
  console.log(`${what} processed again.`);
}
