import { Link, useRoute } from 'wouter';
import { api } from '../../api/client.js';
import { labelOf, wordOf } from '../../api/words.js';
import { Select } from '../../parts/field.js';
import { useFilters } from '../../parts/filters.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { DELIVERY, StateOf, wordIn, wordsOf } from '../../parts/state.js';
import { Breakable, Moment, number } from '../../parts/values.js';
import { DeliveryActions, DeliveryDetail } from './delivery-detail.js';
import { Rejections } from './rejections.js';
import { ReplaySelection } from './replay-selection.js';

/** The change feed does not tell of deliveries. */
const POLL_MS = 5_000;

/** The inbox of webhooks: what arrived, what became of it, and what was refused at the door. */
export default function DeliveriesPage() {
  const [, params] = useRoute<{ id: string }>('/deliveries/:id');
  if (!params) return <Deliveries />;
  return params.id === 'refused' ? <Rejections /> : <DeliveryDetail id={params.id} />;
}

/** Deliveries, the newest first, by state. */
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
        {state ? wordOf('deliveryState', state)?.hint : 'Each webhook of the platform, the newest first.'} What it said
        is personal and never shown. <Link href="/deliveries/refused">Refused requests</Link>
      </p>
      <List
        name={['deliveries', state]}
        read={(cursor) => api.GET('/v1/webhook-deliveries', { params: { query: { state, cursor } } })}
        everyMs={POLL_MS}
        empty={
          state
            ? `No delivery has the state “${labelOf('deliveryState', state)}”.`
            : 'Nothing was delivered yet. The platform sends its webhooks to /webhooks/platform of this service, signed with PLATFORM_WEBHOOK_SECRET.'
        }
        caption="Webhook deliveries"
        keyOf={({ id }) => id}
        columns={[
          ['Delivery', ({ id }) => <Link href={`/deliveries/${id}`}>{id}</Link>],
          ['State', (delivery) => <StateOf of="deliveryState" state={delivery.state} />],
          ['Event', ({ eventType }) => <Breakable name={eventType ?? 'not known'} />],
          ['Received', ({ receivedAt }) => <Moment at={receivedAt} />],
          ['Failed', ({ attempts }) => number(attempts), 'number'],
          ['Reason', ({ error }) => error?.message],
          ['Actions', (delivery) => <DeliveryActions delivery={delivery} />],
        ]}
      />
    </>
  );
}
