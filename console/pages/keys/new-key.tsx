import { api, body, type Schemas } from '../../api/client.js';
import { type Scope, useScopes } from '../../api/session.js';
import { momentOf } from '../../api/zone.js';
import { ConfirmedAction } from '../../parts/action.js';
import { Field, Select } from '../../parts/field.js';

type OnMade = (made: Schemas['NewApiKeyResponse']) => void;

async function make(given: FormData): Promise<Schemas['NewApiKeyResponse']> {
  const scopes = given.getAll('scope') as Scope[];
  if (scopes.length === 0) throw new Error('Choose at least one scope.');
  const expiresAt = momentOf(given.get('expiresAt'));
  return body(api.POST('/v1/api-keys', { body: { name: String(given.get('name')), scopes, expiresAt } }));
}

/** Creates a key with scopes that the caller has. */
export function NewKey({ onMade }: { onMade: OnMade }) {
  const allowed = useScopes();
  return (
    <ConfirmedAction label="Create key" title="Create key" isPrimary run={make} onDone={onMade}>
      <div className="fields">
        <Field label="Name" name="name" required maxLength={100} aria-describedby="key-name-help" />
        <span id="key-name-help" className="help">
          What uses the key, such as “ehr” or “on-call”. The audit log shows it.
        </span>
        <fieldset className="checks">
          <legend>Scopes</legend>
          {allowed.map((scope) => (
            <label key={scope} className="check">
              <input type="checkbox" name="scope" value={scope} />
              {scope}
            </label>
          ))}
        </fieldset>
        <Field label="Expires (empty: in a year)" name="expiresAt" type="datetime-local" />
      </div>
    </ConfirmedAction>
  );
}

/** Seconds until a rotated key ends. */
const OVERLAPS = [
  ['0', 'immediately'],
  ['3600', 'in an hour'],
  ['86400', 'in a day'],
  ['604800', 'in a week'],
] as const;

/** Creates the successor of a key; the old one is accepted alongside it for a while. */
export function RotateKey({ apiKey: { id, name }, onMade }: { apiKey: Schemas['ApiKeyResponse']; onMade: OnMade }) {
  const rotate = (given: FormData) => {
    const overlapSeconds = Number(given.get('overlapSeconds'));
    return body(api.POST('/v1/api-keys/{id}/rotate', { params: { path: { id } }, body: { overlapSeconds } }));
  };
  return (
    <ConfirmedAction label="Rotate" title={`Rotate the key ${name}?`} run={rotate} onDone={onMade}>
      <p>This creates a new key with the same name and scopes. Give the new key to the users of the old one.</p>
      <Select label="The old key ends" name="overlapSeconds" options={OVERLAPS} value="86400" />
    </ConfirmedAction>
  );
}
