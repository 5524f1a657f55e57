import { type Command, Option } from 'commander';
import type { Page } from '../../http/request/page.js';
import type { DeliveryResponse, ReplayResponse } from '../../webhooks/admin/deliveries.dto.js';
import { type Api, withQuery } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { counted } from '../output/duration.js';
import { printAnswer, table } from '../output/print.js';

const STATES = ['received', 'processed', 'ignored', 'not-understood', 'failed', 'dead'];
const NONE = 'There are no such deliveries.';
const stateOption = () => new Option('--state <state>', 'only these').choices(STATES);

/** `notebridge deliveries …` */
export function addDeliveriesCommands(program: Command, api: Api): void {
  const deliveries = program.command('deliveries').description('webhooks that the platform delivered');

  deliveries
    .command('list', { isDefault: true })
    .description('list the latest 50')
    .addOption(stateOption())
    .option('--json', 'print what the service answers')
    .action(async ({ state, json }: { state?: string; json?: boolean }) =>
      printAnswer(
        await api.get<Page<DeliveryResponse>>(withQuery('/v1/webhook-deliveries', { state })),
        json,
        ({ items }) => (items.length > 0 ? table(items.map(deliveryRow)) : NONE),
      ),
    );

  deliveries
    .command('replay')
    .description('have one delivery processed again, or all of a state')
    .argument('[id]')
    .addOption(stateOption())
    .option('--yes', 'do it; without this the selection is only counted')
    .action(async (id: string | undefined, { state, yes }: { state?: string; yes?: boolean }) => {
      if (!id) return replayAll(api, state, yes);
      await api.post(`/v1/webhook-deliveries/${encodeURIComponent(id)}/replay`);
      console.log(`Delivery ${id} is processed again.`);
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

function deliveryRow({ id, receivedAt, eventType, state, attempts, error }: DeliveryResponse) {
  return { id, received: receivedAt, event: eventType, state, attempts, why: error?.message };
}

async function replayAll(api: Api, state: string | undefined, sure = false): Promise<void> {
  if (!state) throw new CliFault('Say which: an id, or --state dead.');
  const { count, plan } = await api.post<ReplayResponse>('/v1/webhook-deliveries/replay', { state, dryRun: true });
  if (count === 0) return console.log(NONE);
  const what = counted(count, 'delivery', 'deliveries');
  if (!sure) return console.log(`${what} would be processed again; to do it, add --yes.`);
  await api.post('/v1/webhook-deliveries/replay', { state, plan });
  console.log(`${what} processed again.`);
}
