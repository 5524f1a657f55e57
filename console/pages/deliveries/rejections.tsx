import { api } from '../../api/client.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { Moment, number } from '../../parts/values.js';

/** Requests that the receiver rejected, by minute and cause. */
export function Rejections() {
  return (
    <>
      <Head back={['/deliveries', 'All deliveries']} title="Rejected requests" />
      <p className="help">
        A few rejected requests are normal, because the webhook URL is public. If there are many wrong signatures and no
        deliveries since, add the secret with which the platform signs to PLATFORM_WEBHOOK_SECRET.
      </p>
      <List
        name={['rejections']}
        read={(cursor) => api.GET('/v1/webhook-rejections', { params: { query: { cursor } } })}
        empty="No request was rejected."
        caption="Rejected requests by minute"
        keyOf={({ minute, cause }) => `${minute} ${cause}`}
        columns={[
          ['Minute', ({ minute }) => <Moment at={minute} exact />],
          ['Cause', ({ cause }) => cause],
          ['Requests', ({ count }) => number(count), 'number'],
        ]}
      />
    </>
  );
}
