import type { ComponentProps } from 'react';
import { labelOf, type Vocabulary } from '../api/words.js';
import { zone } from '../api/zone.js';

/**
 * A text field with its label, without completion and spelling, because it holds ids and names. If `name` is that of the
 * API, an error about it shows the label. The label of a moment names its zone.
 */
export function Field({ label, ...input }: { label: string } & ComponentProps<'input'>) {
  return (
    <label className="field">
      {label}
      {input.type === 'datetime-local' && <ZoneName />}
      <input autoComplete="off" spellCheck={false} {...input} />
    </label>
  );
}

const ZoneName = () => <span className="zone"> {zone.use()}</span>;

/** A choice with its label. Without `onChange` it belongs to a form, and `value` is its first value. */
export function Select<V extends string>(props: {
  label: string;
  name?: string;
  /** Values, each with a text unless it is its own. */
  options: readonly (V | readonly [value: V, words: string])[];
  /** The vocabulary of the values. */
  of?: Vocabulary | undefined;
  /** The text for no choice, if that is possible. */
  none?: string;
  value?: V;
  onChange?: (value: V | undefined) => void;
}) {
  const { label, name, options, of, none, value = '', onChange } = props;
  const pairs = options.map((option) =>
    typeof option === 'string' ? ([option, of ? labelOf(of, option) : option] as const) : option,
  );
  return (
    <label className="field">
      {label}
      <select
        name={name}
        {...(onChange ? { value } : { defaultValue: value })}
        onChange={({ target }) => onChange?.(pairs.find(([each]) => each === target.value)?.[0])}
      >
        {none !== undefined && <option value="">{none}</option>}
        {pairs.map(([each, words]) => (
          <option key={each} value={each}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The label of the field with a name of the API; undefined if the page has none. */
export function labelOfField(name: string): string | null | undefined {
  const [field] = document.getElementsByName(name);
  if (!(field instanceof HTMLInputElement || field instanceof HTMLSelectElement)) return undefined;
  // The texts of a choice, or a zone, follow in the same label.
  return field.ariaLabel ?? field.labels?.[0]?.firstChild?.textContent;
}
