import { Field, Select } from '../../parts/field.js';
import type { Choices } from './upload.js';

const MODES = [
  ['upsert', 'keep'],
  ['snapshot', 'delete'],
] as const;

/** The options of an upload. */
export function ImportChoices(props: { choices: Choices; onChange: (choices: Choices) => void }) {
  const { choices, onChange } = props;
  const change = (changed: Partial<Choices>) => onChange({ ...choices, ...changed });
  const field = (name: 'defaultProvider' | 'idSystem' | 'encounterSince', label: string, type = 'text') => (
    <Field
      {...{ name, label, type }}
      maxLength={type === 'text' ? 200 : undefined}
      value={choices[name] ?? ''}
      onChange={({ target }) => change({ [name]: target.value })}
    />
  );
  return (
    <div className="fields">
      <Select
        label="People not in these files"
        options={MODES}
        value={choices.mode}
        onChange={(mode = 'upsert') => change({ mode })}
      />
      <label className="check">
        <input type="checkbox" checked={choices.dryRun} onChange={({ target }) => change({ dryRun: target.checked })} />
        Preview only: send nothing to the platform until I apply the plan
      </label>
      {field('defaultProvider', 'Default provider for clients without one (external id)')}
      <details>
        <summary>FHIR options</summary>
        {field('idSystem', 'Identifier systems whose value is the external id, separated by commas')}
        {field('encounterSince', 'Take providers from encounters since (empty: the last 365 days)', 'date')}
      </details>
    </div>
  );
}
