import { useState } from 'react';
import { api, type Schemas } from '../../api/client.js';
import { ConfirmedAction, Dialog } from '../../parts/action.js';
import { Head } from '../../parts/layout.js';
import { useNow } from '../../parts/now.js';
import { List } from '../../parts/read.js';
import { State } from '../../parts/state.js';
import { Copyable, Moment } from '../../parts/values.js';
import { NewKey, RotateKey } from './new-key.js';

type Key = Schemas['ApiKeyResponse'];
type MadeKey = Schemas['NewApiKeyResponse'];

/** The API keys with their scopes and expiry. */
export default function KeysPage() {
  const [made, setMade] = useState<MadeKey>();
  const now = useNow();
  return (
    <>
      <Head title="Keys">
        <NewKey onMade={setMade} />
      </Head>
      {made && <ShownOnce made={made} onClose={() => setMade(undefined)} />}
      <List
        name={['keys']}
        read={(cursor) => api.GET('/v1/api-keys', { params: { query: { cursor } } })}
        empty="There is no key except ADMIN_API_KEY. Create one for the EHR, with the scopes that it needs."
        caption="API keys"
        keyOf={({ id }) => id}
        columns={[
          [
            'Name',
            ({ name, prefix }) => (
              <>
                <strong>{name}</strong>
                <div className="help">
                  <code>{prefix}…</code>
                </div>
              </>
            ),
          ],
          [
            'State',
            (key) => (
              <>
                <KeyState apiKey={key} now={now} />
                {key.warnings.map((warning) => (
                  <div key={warning} className="help">
                    {NOTES[warning]}
                  </div>
                ))}
              </>
            ),
          ],
          ['Scopes', ({ scopes }) => scopes.join(', '), 'text'],
          ['Created', ({ createdAt }) => <Moment at={createdAt} />],
          ['Last used', ({ lastUsedAt }) => <Moment at={lastUsedAt} />],
          ['Expires', ({ expiresAt }) => <Moment at={expiresAt} />],
          ['Actions', (key) => stateOf(key, now) === 'in use' && <Actions apiKey={key} onMade={setMade} />],
        ]}
      />
    </>
  );
}

function Actions({ apiKey, onMade }: { apiKey: Key; onMade: (made: MadeKey) => void }) {
  return (
    <div className="buttons">
      {apiKey.rotatedTo === null && <RotateKey apiKey={apiKey} onMade={onMade} />}
      <ConfirmedAction
        label="Revoke"
        title={`Revoke the key ${apiKey.name}?`}
        isDangerous
        run={() => api.DELETE('/v1/api-keys/{id}', { params: { path: { id: apiKey.id } } })}
      >
        <p>The key stops working immediately, and browsers that signed in with it are signed out.</p>
      </ConfirmedAction>
    </div>
  );
}

function stateOf({ revokedAt, expiresAt }: Key, now: number): 'revoked' | 'expired' | 'in use' {
  if (revokedAt) return 'revoked';
  return expiresAt && Date.parse(expiresAt) <= now ? 'expired' : 'in use';
}

const NOTES: Record<Key['warnings'][number], string> = {
  altered: 'Invalid, because it was changed outside this service. Find out who did this, then revoke the key.',
  'expires-soon': 'Expires within 30 days.',
  unused: 'Unused for 90 days.',
};

const TONES = { revoked: 'quiet', expired: 'warn', 'in use': 'good' } as const;

function KeyState({ apiKey, now }: { apiKey: Key; now: number }) {
  const state = stateOf(apiKey, now);
  return <State tone={TONES[state]}>{apiKey.rotatedTo && state === 'in use' ? 'rotated' : state}</State>;
}

/** A key that was just created; the service cannot show it again. */
function ShownOnce({ made, onClose }: { made: MadeKey; onClose: () => void }) {
  return (
    <Dialog title={`The key of ${made.name}`} close="Done" isKept onClose={onClose}>
      <p>This key is shown only once. Copy it now to the secret store of the system that will use it.</p>
      <p>
        <Copyable text={made.key} name="the key" />
      </p>
    </Dialog>
  );
}
