import { api, type Schemas } from '../../api/client.js';
import { useScopes } from '../../api/session.js';
import { ConfirmedAction } from '../../parts/action.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { State } from '../../parts/state.js';
import { Moment } from '../../parts/values.js';

type Browser = Schemas['ListedSessionResponse'];

/** The browsers that are signed in to the console. */
export default function BrowsersPage() {
  const isAll = useScopes().includes('admin');
  return (
    <>
      <Head title="Signed-in browsers" />
      <p className="quiet">
        {isAll
          ? 'All browsers that are signed in to this console.'
          : 'Browsers in which you are signed in. To see those of other users, you need the scope admin.'}
      </p>
      <List
        name={['browsers']}
        read={(cursor) => api.GET('/v1/browser-sessions', { params: { query: { cursor } } })}
        empty="No browser is signed in."
        caption="Signed-in browsers, newest first"
        keyOf={({ id }) => id}
        columns={[
          ['User', ({ caller }) => <strong>{caller.name}</strong>],
          ['Signed in with', ({ caller: { issuer } }) => (issuer === null ? 'API key' : new URL(issuer).host)],
          ['Signed in', ({ createdAt }) => <Moment at={createdAt} />],
          ['Last used', ({ lastSeenAt }) => <Moment at={lastSeenAt} />],
          ['Ends', ({ expiresAt }) => <Moment at={expiresAt} />],
          ['Actions', (browser) => <End browser={browser} />],
        ]}
      />
    </>
  );
}

function End({ browser: { id, caller, isCurrent } }: { browser: Browser }) {
  if (isCurrent) return <State tone="good">this browser</State>;
  return (
    <ConfirmedAction
      label="End session"
      title={`End the session of ${caller.name}?`}
      isDangerous
      run={() => api.DELETE('/v1/browser-sessions/{id}', { params: { path: { id } } })}
    >
      <p>That browser is signed out immediately. Its user can sign in again.</p>
    </ConfirmedAction>
  );
}
