import type { ComponentProps } from 'react';

/** What is typed, under its name: ids and names, which no browser can complete or spell. */
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
  /** What choosing none of them is called, where that can be. */
  none?: string;
  value?: V;
  onChange?: (value: V | undefined) => void;
}) {
  const { label, name, options, none, value = '', onChange } = props;
  const pairs = options.map((option) => (typeof option === 'string' ? ([option, option] as const) : option));
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

/** What a `datetime-local` field holds as RFC 3339; undefined where it is empty. */
export const momentOf = (local: unknown): string | undefined =>
  local ? new Date(String(local)).toISOString() : undefined;
