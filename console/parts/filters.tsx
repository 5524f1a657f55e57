import { useSearchParams } from 'wouter';
import type { Vocabulary } from '../api/words.js';
import { Field, momentOf, Select } from './field.js';

/**
 * What a list is filtered by, kept in the address, so that it can be bookmarked and sent to somebody; what is empty is
 * left out. Nothing personal may be a filter: addresses are logged.
 *
 * @param names the parameters of the page
 */
export function useFilters<N extends string>(
  ...names: readonly N[]
): [Partial<Record<N, string>>, (change: Partial<Record<N, string>>) => void] {
  const [, setParameters] = useSearchParams();
  // The router's own copy is decoded once too often: of an id such as a%2Fb it would leave a/b.
  const parameters = () => new URLSearchParams(window.location.search);
  const given = [...parameters()].filter(([name, value]) => names.includes(name as N) && value);
  const change = (changed: Partial<Record<N, string>>) =>
    setParameters(
      () => {
        const next = parameters();
        for (const [name, value] of Object.entries<string | undefined>(changed)) {
          if (value) next.set(name, value);
          else next.delete(name);
        }
        return next;
      },
      { replace: true },
    );
  return [Object.fromEntries(given) as Partial<Record<N, string>>, change];
}

/** One thing that a list can be asked for. */
interface Filter<N extends string> {
  name: N;
  label: string;
  /** What it looks like. */
  example?: string;
  /** All values, with their words. */
  options?: readonly (string | readonly [value: string, words: string])[];
  of?: Vocabulary;
  /** A moment, shown in the reader's time zone and kept as RFC 3339. */
  isMoment?: boolean;
}

type Filters<N extends string> = Partial<Record<N, string>>;

/** What a list is asked for, once the form is sent. Ids only: the address of the page holds them. */
export function FilterForm<N extends string>(props: {
  fields: readonly Filter<N>[];
  filters: Filters<N>;
  onChange: (filters: Filters<N>) => void;
}) {
  const { fields, filters, onChange } = props;
  const change = (said: (field: Filter<N>) => string) =>
    onChange(Object.fromEntries(fields.map((field) => [field.name, said(field)])) as Filters<N>);
  const search = (given: FormData) =>
    change(({ name, isMoment }) => {
      const text = String(given.get(name)).trim();
      // An untouched moment stays as the address says it, be it to the second or the id of an entry.
      if (isMoment && text === localMoment(filters[name])) return filters[name] ?? '';
      return (isMoment && momentOf(text)) || text;
    });
  return (
    <search>
      <form
        className="filters"
        key={JSON.stringify(filters)}
        onSubmit={(event) => {
          event.preventDefault();
          search(new FormData(event.currentTarget));
        }}
      >
        {fields.map(({ name, label, example, options, of, isMoment }) =>
          options ? (
            <Select key={name} label={label} name={name} none="any" options={options} of={of} value={filters[name]} />
          ) : (
            <Field
              key={name}
              label={label}
              name={name}
              type={isMoment ? 'datetime-local' : 'text'}
              placeholder={example}
              defaultValue={isMoment ? localMoment(filters[name]) : filters[name]}
            />
          ),
        )}
        <div className="buttons">
          <button type="submit" className="primary">
            Search
          </button>
          {Object.keys(filters).length > 0 && (
            <button type="button" onClick={() => change(() => '')}>
              Show all
            </button>
          )}
        </div>
      </form>
    </search>
  );
}

/** A moment as a field of the browser has it, in the reader's time zone; empty for what is no moment. */
function localMoment(iso: string | undefined): string {
  const date = new Date(iso ?? '');
  if (Number.isNaN(date.getTime())) return '';
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
