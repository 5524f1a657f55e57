import { api } from '../../api/client.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { Moment, number } from '../../parts/values.js';

/** Requests that the receiver refused, by minute and cause. */
export function Rejections() {
  return (
    <>
      <Head back={['/deliveries', 'All deliveries']} title="Refused requests" />
      <p className="help">
        Anybody can send a few. Many with a wrong signature and no delivery since mean that the platform signs with a
        secret that PLATFORM_WEBHOOK_SECRET lacks.
      </p>
      <List
        name={['rejections']}
        read={(cursor) => api.GET('/v1/webhook-rejections', { params: { query: { cursor } } })}
        empty="The receiver refused nothing."
        caption="Refused requests by minute"
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
