import { api, type Schemas } from '../../api/client.js';
import { usePolling } from '../../api/queries.js';
import { wordOf } from '../../api/words.js';
import { ConfirmedAction } from '../../parts/action.js';
import { Facts, Head } from '../../parts/layout.js';
import { Loaded, useRead } from '../../parts/read.js';
import { StateOf } from '../../parts/state.js';
import { Breakable, Copyable, Moment, number } from '../../parts/values.js';

type Delivery = Schemas['DeliveryResponse'];

const POLL_MS = 2_000;

/** One delivery, without its payload. */
export function DeliveryDetail({ id }: { id: string }) {
  const everyMs = usePolling(POLL_MS);
  const query = useRead(['delivery', id], () => api.GET('/v1/webhook-deliveries/{id}', { params: { path: { id } } }), {
    refetchInterval: ({ state }) => Boolean(state.data?.dueAt) && everyMs,
  });
  return (
    <>
      <Head back={['/deliveries', 'All deliveries']} title={`Delivery ${id}`}>
        {query.data && <DeliveryActions delivery={query.data} />}
      </Head>
      <Loaded query={query}>{(delivery) => <Shown delivery={delivery} />}</Loaded>
    </>
  );
}

function Shown({ delivery }: { delivery: Delivery }) {
  const { id, state, eventType, error, secretIndex } = delivery;
  return (
    <section className="card" aria-label="Facts">
      <p>
        <StateOf of="deliveryState" state={state} /> {wordOf('deliveryState', state)?.hint}
      </p>
      {error && (
        <p>
          <strong>Reason:</strong> {error.message} <code>{error.code}</code>
        </p>
      )}
      <Facts
        facts={{
          Id: <Copyable text={id} name="the id" />,
          Event: eventType && <Breakable name={eventType} />,
          'Sent by the platform': <Moment at={delivery.sentAt} exact />,
          Received: <Moment at={delivery.receivedAt} exact />,
          Processed: <Moment at={delivery.processedAt} exact />,
          'Next attempt': <Moment at={delivery.dueAt} />,
          'Failed attempts': number(delivery.attempts),
          'Identical repeats': number(delivery.repeats),
          'Signed with': <Breakable name={`secret ${number(secretIndex + 1)} of PLATFORM_WEBHOOK_SECRET`} />,
        }}
      />
    </section>
  );
}

/** The actions on a delivery. */
export function DeliveryActions({ delivery: { id, state } }: { delivery: Schemas['DeliveryResponse'] }) {
  const params = { path: { id } };
  return (
    <div className="buttons">
      <ConfirmedAction
        label="Replay"
        title={`Replay delivery ${id}?`}
        run={() => api.POST('/v1/webhook-deliveries/{id}/replay', { params })}
      >
        <p>This delivery is processed again, even if it was processed before.</p>
      </ConfirmedAction>
      {state === 'not-understood' && (
        <ConfirmedAction
          label="Dismiss"
          title={`Dismiss delivery ${id}?`}
          run={() => api.POST('/v1/webhook-deliveries/{id}/dismiss', { params })}
        >
          <p>
            Nothing more is done with this delivery. It becomes “Ignored”, and is deleted when its retention period
            ends.
          </p>
        </ConfirmedAction>
      )}
    </div>
  );
}
