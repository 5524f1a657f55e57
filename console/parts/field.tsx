import type { ComponentProps } from 'react';
import { labelOf, type Vocabulary } from '../api/words.js';

/**
 * What is typed, under its name: ids and names, which no browser can complete or spell. With the API's `name` for it, an
 * error that is about it calls it by its label.
 */
export function Field({ label, ...input }: { label: string } & ComponentProps<'input'>) {
  return (
    <label className="field">
      {label}
      <input autoComplete="off" spellCheck={false} {...input} />
    </label>
  );
}

/** A choice under its name. Without `onChange` it belongs to a form, and `value` is what it begins with. */
export function Select<V extends string>(props: {
  label: string;
  name?: string;
  /** Values, those that are no words of their own with the words for them. */
  options: readonly (V | readonly [value: V, words: string])[];
  /** The vocabulary of the values. */
  of?: Vocabulary | undefined;
  /** What choosing none of them is called, where that can be. */
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

/** What the page calls the field with a name of the API; undefined where it shows none. */
export function labelOfField(name: string): string | null | undefined {
  const [field] = document.getElementsByName(name);
  if (!(field instanceof HTMLInputElement || field instanceof HTMLSelectElement)) return undefined;
  // The words of a choice follow in the same label.
  return field.ariaLabel ?? field.labels?.[0]?.firstChild?.textContent;
}

/** What a `datetime-local` field holds as RFC 3339; undefined where it is empty. */
export const momentOf = (local: unknown): string | undefined =>
  local ? new Date(String(local)).toISOString() : undefined;
