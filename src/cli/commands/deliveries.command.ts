import { type Command, Option } from 'commander';
import type { DeliveryResponse, ReplayResponse } from '../../webhooks/admin/deliveries.dto.js';
import { type Api, type Page, withQuery } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { table } from '../output/table.js';

const STATES = ['received', 'processed', 'ignored', 'not-understood', 'failed', 'dead'];
const stateOption = () => new Option('--state <state>', 'only these').choices(STATES);

/** `notebridge deliveries …` */
export function addDeliveriesCommands(program: Command, api: Api): void {
  const deliveries = program.command('deliveries').description('webhooks that the platform delivered');

  deliveries
    .command('list', { isDefault: true })
    .description('list the latest 50')
    .addOption(stateOption())
    .option('--json', 'print what the service answers')
    .action(async ({ state, json }: { state?: string; json?: boolean }) => {
      const page = await api.get<Page<DeliveryResponse>>(withQuery('/v1/webhook-deliveries', { state }));
      if (json) return console.log(JSON.stringify(page, null, 2));
      if (page.items.length === 0) return console.log('There are no such deliveries.');
      console.log(table(['id', 'received', 'event', 'state', 'attempts', 'why'], page.items.map(deliveryRow)));
    });

  deliveries
    .command('replay')
    .description('have one delivery processed again, or all of a state')
    .argument('[id]')
    .addOption(stateOption())
    .option('--yes', 'do it; without this the selection is only counted')
    .action(async (id: string | undefined, { state, yes }: { state?: string; yes?: boolean }) => {
      if (id) {
        await api.post(`/v1/webhook-deliveries/${id}/replay`);
        return console.log(`Delivery ${id} is processed again.`);
      }
      if (!state) throw new CliFault('Say which: an id, or --state dead.');
      await replayAll(api, state, yes ?? false);
    });

  deliveries
    .command('dismiss')
    .description('end the wait of a delivery that was not understood')
    .argument('<id>')
    .action(async (id: string) => {
      await api.post(`/v1/webhook-deliveries/${encodeURIComponent(id)}/dismiss`);
      console.log(`Delivery ${id} is dismissed.`);
    });
}

function deliveryRow({ id, receivedAt, eventType, state, attempts, error }: DeliveryResponse): unknown[] {
  return [id, receivedAt, eventType, state, attempts, error?.message];
}

async function replayAll(api: Api, state: string, sure: boolean): Promise<void> {
  const counts = await api.post<ReplayResponse>('/v1/webhook-deliveries/replay', { state, dryRun: true });
  const what = counts.count === 1 ? '1 delivery' : `${counts.count} deliveries`;
  if (counts.count === 0) return console.log('There are no such deliveries.');
  if (!sure) return console.log(`${what} would be processed again; to do it, add --yes.`);
  await api.post('/v1/webhook-deliveries/replay', { state, plan: counts.plan });
  console.log(`${what} processed again.`);
}
