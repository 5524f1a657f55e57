import { api, type Schemas } from '../../api/client.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { Copyable, Moment } from '../../parts/values.js';
import { answerInWords } from './test-push.js';

type Attempt = Schemas['AttemptResponse'];

/** The last attempts to push events to one endpoint. Not read again by itself, because each read is audited. */
export function Attempts({ id }: { id: string }) {
  return (
    <>
      <Head back={['/subscriptions', 'All subscriptions']} title="Last attempts" />
      <p>
        Subscription <Copyable text={id} name="the id" />. The last 50 attempts are kept.
      </p>
      <List<Attempt>
        name={['subscriptions', id, 'attempts']}
        read={() => api.GET('/v1/subscriptions/{id}/attempts', { params: { path: { id } } })}
        empty="No event was pushed yet."
        caption="Attempts, newest first"
        keyOf={({ at, cursor }) => `${at} ${cursor}`}
        columns={[
          ['Answered', ({ at }) => <Moment at={at} exact />],
          ['Event', ({ type, cursor }) => (cursor === null ? 'None was read' : `${type}, ${cursor}`)],
          ['Outcome', answerInWords, 'text'],
          ['Duration', ({ durationMs }) => `${durationMs} ms`, 'number'],
        ]}
      />
    </>
  );
}
