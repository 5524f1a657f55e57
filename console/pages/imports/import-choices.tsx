import { Field, Select } from '../../parts/field.js';
import type { Choices } from './upload.js';

const MODES = [
  ['upsert', 'stays as is (upsert)'],
  ['snapshot', 'is deleted from the platform (snapshot)'],
] as const;

/** What else is said with the files. */
export function ImportChoices(props: { choices: Choices; onChange: (choices: Choices) => void; isFhir: boolean }) {
  const { choices, onChange, isFhir } = props;
  const change = (changed: Partial<Choices>) => onChange({ ...choices, ...changed });
  return (
    <div className="fields">
      <Select
        label="Who is missing in the files"
        options={MODES}
        value={choices.mode}
        onChange={(mode = 'upsert') => change({ mode })}
      />
      <label className="check">
        <input type="checkbox" checked={choices.dryRun} onChange={({ target }) => change({ dryRun: target.checked })} />
        Plan only: nothing is sent to the platform before I apply the plan
      </label>
      <Field
        label="Provider of clients that name none (external id, optional)"
        name="defaultProvider"
        maxLength={200}
        value={choices.defaultProvider ?? ''}
        onChange={({ target }) => change({ defaultProvider: target.value })}
      />
      {isFhir && (
        <>
          <Field
            label="FHIR identifier systems whose value is the external id (comma-separated)"
            name="idSystem"
            value={choices.idSystem ?? ''}
            onChange={({ target }) => change({ idSystem: target.value })}
          />
          <Field
            label="Encounters name providers since (empty: the last 365 days)"
            name="encounterSince"
            type="date"
            value={choices.encounterSince ?? ''}
            onChange={({ target }) => change({ encounterSince: target.value })}
          />
        </>
      )}
    </div>
  );
}
