import { useRoute } from 'wouter';
import { api } from '../../api/client.js';
import { labelOf, wordOf } from '../../api/words.js';
import { Select } from '../../parts/field.js';
import { useFilters } from '../../parts/filters.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { DELIVERY, StateOf, wordIn, wordsOf } from '../../parts/state.js';
import { Breakable, IdLink, Moment, number } from '../../parts/values.js';
import { DeliveryActions, DeliveryDetail } from './delivery-detail.js';
import { ReplaySelection } from './replay-selection.js';

/** How often to read the list, because the change feed has no deliveries. */
const POLL_MS = 5_000;

/** The webhooks of the platform with their outcomes. */
export default function DeliveriesPage() {
  const [, params] = useRoute<{ id: string }>('/deliveries/:id');
  return params ? <DeliveryDetail id={params.id} /> : <Deliveries />;
}

/** Deliveries, newest first, by state. */
function Deliveries() {
  const [filters, setFilters] = useFilters('state');
  const state = wordIn(DELIVERY, filters.state);
  return (
    <>
      <Head title="Deliveries">
        <Select
          label="State"
          none="any"
          options={wordsOf(DELIVERY)}
          of="deliveryState"
          value={state}
          onChange={(chosen) => setFilters({ state: chosen })}
        />
        <ReplaySelection state={state} />
      </Head>
      <p className="help">
        {state ? wordOf('deliveryState', state)?.hint : 'Webhooks of the platform, newest first.'} Payloads contain
        personal data and are never shown.
      </p>
      <List
        name={['deliveries', state]}
        read={(cursor) => api.GET('/v1/webhook-deliveries', { params: { query: { state, cursor } } })}
        everyMs={POLL_MS}
        empty={
          state
            ? `No delivery has the state “${labelOf('deliveryState', state)}”.`
            : 'No webhook has arrived yet. The platform sends them to /webhooks/platform of this service, signed with PLATFORM_WEBHOOK_SECRET.'
        }
        caption="Webhook deliveries"
        keyOf={({ id }) => id}
        columns={[
          ['Delivery', ({ id }) => <IdLink href={`/deliveries/${id}`} id={id} />],
          ['State', (delivery) => <StateOf of="deliveryState" state={delivery.state} />],
          ['Event', ({ eventType }) => <Breakable name={eventType ?? 'unknown'} />],
          ['Received', ({ receivedAt }) => <Moment at={receivedAt} />],
          ['Failed attempts', ({ attempts }) => number(attempts), 'number'],
          ['Reason', ({ error }) => error?.message],
          ['Actions', (delivery) => <DeliveryActions delivery={delivery} />],
        ]}
      />
    </>
  );
}
