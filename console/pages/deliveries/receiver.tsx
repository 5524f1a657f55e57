import { api } from '../../api/client.js';
import { usePolling } from '../../api/queries.js';
import { DataTable, Section } from '../../parts/layout.js';
import { Loaded, useRead } from '../../parts/read.js';
import { Moment, number } from '../../parts/values.js';

/** How often to read it, because the change feed has nothing about it. */
const POLL_MS = 5_000;

/** The last genuine delivery, and why requests were refused since then. */
export function Receiver() {
  const query = useRead(['receiver'], () => api.GET('/v1/webhook-receiver'), { refetchInterval: usePolling(POLL_MS) });
  return (
    <Section title="Refused requests" card>
      <Loaded query={query}>
        {({ lastGenuineAt, refusals }) => {
          const since = lastGenuineAt && (
            <>
              since the last genuine delivery at <Moment at={lastGenuineAt} exact />
            </>
          );
          if (refusals.length === 0) return <p>None {since || 'so far, and no genuine delivery'}.</p>;
          return (
            <>
              <p>
                A few are normal, because the webhook URL is public. Counted {since || 'before any genuine delivery'}.
              </p>
              <DataTable
                caption="Refused requests by cause"
                keyOf={({ cause }) => cause}
                rows={refusals}
                columns={[
                  ['Cause', ({ cause }) => <code>{cause}</code>],
                  ['Requests', ({ count }) => number(count), 'number'],
                  ['What to do', ({ message }) => message, 'text'],
                ]}
              />
            </>
          );
        }}
      </Loaded>
    </Section>
  );
}
