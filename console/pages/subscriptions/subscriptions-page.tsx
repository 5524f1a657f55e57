import { Link, useRoute } from 'wouter';
import { api, type Schemas } from '../../api/client.js';
import { labelOf } from '../../api/words.js';
import { ConfirmedAction } from '../../parts/action.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { State, StateOf } from '../../parts/state.js';
import { Copyable, Moment, number } from '../../parts/values.js';
import { Attempts } from './attempts.js';
import { answerInWords, TestPush } from './test-push.js';

type Subscription = Schemas['SubscriptionResponse'];

const POLL_MS = 5_000;

/** The endpoints to which events of the feed are pushed. */
export default function SubscriptionsPage() {
  const [, params] = useRoute<{ id: string }>('/subscriptions/:id');
  return params ? <Attempts key={params.id} id={params.id} /> : <Subscriptions />;
}

/** All subscriptions, and how far each is behind. */
function Subscriptions() {
  return (
    <>
      <Head title="Subscriptions" />
      <p className="quiet">
        Endpoints of the EHR to which events are pushed, one at a time and in order. Create one with{' '}
        <code>npx notebridge subscriptions create</code> or the API.
      </p>
      <List
        name={['subscriptions']}
        read={(cursor) => api.GET('/v1/subscriptions', { params: { query: { cursor } } })}
        everyMs={POLL_MS}
        empty="There are no subscriptions. Without one, the EHR must read the events itself (GET /v1/events)."
        caption="Subscriptions, oldest first"
        keyOf={({ id }) => id}
        columns={[
          ['Endpoint', (subscription) => <Endpoint subscription={subscription} />, 'text'],
          ['State', (subscription) => <SubscriptionState subscription={subscription} />],
          ['Events behind', ({ behind }) => number(behind), 'number'],
          ['Next event', (subscription) => <Next subscription={subscription} />],
          ['Last answer', (subscription) => <LastAnswer subscription={subscription} />],
          ['Actions', (subscription) => <Actions subscription={subscription} />],
        ]}
      />
    </>
  );
}

function Endpoint({ subscription: { id, url, types, description, headers } }: { subscription: Subscription }) {
  const address = addressOf(url);
  return (
    <>
      <strong>{description ?? address}</strong>
      <br />
      {description && (
        <>
          {address}
          <br />
        </>
      )}
      <Copyable text={id} name="the id" isShort />
      <br />
      <span className="quiet">{types === null ? 'All types' : types.join(', ')}</span>
      {headers.length > 0 && <p className="help">Headers: {headers.join(', ')}</p>}
    </>
  );
}

function SubscriptionState({ subscription: { state, pausedReason } }: { subscription: Subscription }) {
  return (
    <>
      {pausedReason === 'requested' ? (
        <State>{labelOf('subscriptionState', state)}</State>
      ) : (
        <StateOf of="subscriptionState" state={state} />
      )}
      {pausedReason && <p className="help">{labelOf('pauseReason', pausedReason)}.</p>}
    </>
  );
}

function Next({ subscription: { next } }: { subscription: Subscription }) {
  if (!next) return null;
  return (
    <>
      {next.type}, <Moment at={next.at} />
    </>
  );
}

function LastAnswer({ subscription: { id, lastAnswer, failures, nextAttemptAt } }: { subscription: Subscription }) {
  if (!lastAnswer) return null;
  return (
    <>
      {answerInWords(lastAnswer)}, <Moment at={lastAnswer.at} />
      {failures > 0 && (
        <p className="help">
          Failed attempts: {number(failures)}.
          {nextAttemptAt && (
            <>
              {' '}
              Next attempt <Moment at={nextAttemptAt} />.
            </>
          )}
        </p>
      )}
      <p className="help">
        <Link href={`/subscriptions/${id}`}>Last attempts</Link>
      </p>
    </>
  );
}

function Actions({ subscription }: { subscription: Subscription }) {
  const { id, url, state, next, behind } = subscription;
  const params = { path: { id } };
  const host = addressOf(url);
  const change = (body: Schemas['ChangeSubscriptionRequest']) => api.PATCH('/v1/subscriptions/{id}', { params, body });
  return (
    <div className="buttons">
      <TestPush id={id} />
      {(state === 'active' || state === 'retrying') && (
        <ConfirmedAction label="Pause" title={`Pause the pushes to ${host}?`} run={() => change({ paused: true })}>
          <p>Events for this endpoint wait until you resume the pushes.</p>
        </ConfirmedAction>
      )}
      {state === 'paused' && (
        <ConfirmedAction label="Resume" title={`Resume the pushes to ${host}?`} run={() => change({ paused: false })}>
          <p>
            It continues after the last event that the endpoint accepted. Pending events of all types: {number(behind)}.
          </p>
        </ConfirmedAction>
      )}
      {state === 'cursor-expired' && (
        <ConfirmedAction
          label="Resume"
          title={`Where should ${host} continue?`}
          run={(given) => change({ paused: false, after: given.get('after') === 'latest' ? 'latest' : '0' })}
        >
          <p>
            Undelivered events were deleted, or the database was restored. Let the EHR read the current state from the
            API.
          </p>
          <label>
            <input type="radio" name="after" value="0" defaultChecked /> From the oldest stored event
          </label>
          <label>
            <input type="radio" name="after" value="latest" /> From new events only
          </label>
        </ConfirmedAction>
      )}
      {next && state !== 'active' && (
        <ConfirmedAction
          label="Skip"
          title={`Skip ${next.type}, ${next.cursor}?`}
          isDangerous
          run={() => api.POST('/v1/subscriptions/{id}/skip', { params, body: { cursor: next.cursor } })}
        >
          <p>This endpoint will not receive this event. GET /v1/events still shows it.</p>
        </ConfirmedAction>
      )}
      <ConfirmedAction
        label="Delete"
        title={`Delete the subscription of ${host}?`}
        isDangerous
        run={() => api.DELETE('/v1/subscriptions/{id}', { params })}
      >
        <p>This endpoint receives no more events. GET /v1/events still shows them.</p>
      </ConfirmedAction>
    </div>
  );
}

/** Host and path of an endpoint: its query may hold a token. */
function addressOf(url: string): string {
  if (!URL.canParse(url)) return url;
  const { host, pathname } = new URL(url);
  return host + pathname;
}
