import { type Command, Option } from 'commander';
import { EVENT_TYPES } from '../../platform/contract/wire-types.js';
import type { DeliveryResponse, ReplayResponse } from '../../webhooks/admin/deliveries.dto.js';
import { codesOf, labelOf, WORDS } from '../../words/words.js';
import type { Api } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { isConfirmed } from '../output/confirm.js';
import { examples } from '../output/help.js';
import { listing } from '../output/list-command.js';
import { momentOption } from '../output/moment-option.js';
import { counted, printAnswer } from '../output/print.js';

const DELIVERIES = '/v1/webhook-deliveries';
const NONE = 'No matching deliveries.';

interface ReplayOptions {
  state?: string;
  eventType?: string;
  since?: string;
  before?: string;
  yes?: boolean;
  json?: boolean;
}

const stateOption = () =>
  new Option('--state <state>', 'only deliveries in this state').choices(codesOf(WORDS.deliveryState));

/** `notebridge deliveries …` and `replay` */
export function addDeliveryCommands(program: Command, api: Api): void {
  const deliveries = program
    .command('deliveries')
    .description('list the webhooks that the platform delivered, or dismiss one');
  const list = deliveries
    .command('list', { isDefault: true })
    .description('list deliveries, newest first')
    .addHelpText('after', examples('deliveries --state dead'));
  listing<DeliveryResponse>(list, api, {
    from: DELIVERIES,
    options: [stateOption()],
    limit: 50,
    row: ({ id, receivedAt: received, eventType: event, state, attempts, error }) => {
      return { id, received, event, state: labelOf('deliveryState', state), attempts, why: error?.message };
    },
    none: NONE,
  });

  deliveries
    .command('dismiss')
    .description('dismiss a delivery that was not understood')
    .argument('<id>')
    .option('--json', "print the service's answer")
    .addHelpText('after', examples('deliveries dismiss 42'))
    .action(async (id: string, { json }: { json?: boolean }) => {
      const answer = await api.post(`${DELIVERIES}/${encodeURIComponent(id)}/dismiss`);
      printAnswer(answer, json, () => `Delivery ${id} was dismissed.`);
    });

  program
    .command('replay')
    .description('process a delivery again, or count a selection, ask, and process it again')
    .argument('[id]')
    .addOption(stateOption())
    .addOption(new Option('--event-type <type>', 'only deliveries of this type').choices(EVENT_TYPES))
    .addOption(momentOption('--since <moment>', 'only deliveries received since then, such as 2026-01-31'))
    .addOption(momentOption('--before <moment>', 'only deliveries received before then'))
    .option('--yes', 'do not ask for confirmation; without a terminal and --yes, only count')
    .option('--json', "print the service's answer, without asking for confirmation")
    .addHelpText('after', examples('replay 42', 'replay --state dead --since 2026-01-31 --yes'))
    .action(async (id: string | undefined, options: ReplayOptions) => {
      if (!id) return replaySelection(api, options);
      const answer = await api.post(`${DELIVERIES}/${encodeURIComponent(id)}/replay`);
      printAnswer(answer, options.json, () => `Delivery ${id} will be processed again.`);
    });
}

/** Counts a selection first, then replays it; nothing if the number has changed since. */
async function replaySelection(api: Api, { yes, json, since, before, ...of }: ReplayOptions): Promise<void> {
  if (!of.state) throw new CliFault('Pass the id of a delivery, or --state dead.');
  const selection = { ...of, receivedSince: since, receivedBefore: before };
  const planned = await api.post<ReplayResponse>(`${DELIVERIES}/replay`, { ...selection, dryRun: true });
  const what = counted(planned.count, 'delivery', 'deliveries');
  if (planned.count === 0) return printAnswer(planned, json, () => NONE);
  if (!yes && (json || !(await isConfirmed(`Replay ${what}?`)))) {
    process.exitCode = 2;
    return printAnswer(planned, json, () => `${what} would be replayed. To replay, add --yes.`);
  }
  const done = await api.post<ReplayResponse>(`${DELIVERIES}/replay`, { ...selection, plan: planned.plan });
  printAnswer(done, json, () => `${what} will be processed again.`);
}
