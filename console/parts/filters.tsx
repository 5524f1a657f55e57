import { useSearchParams } from 'wouter';
import type { Vocabulary } from '../api/words.js';
import { fieldMoment, momentOf, zone } from '../api/zone.js';
import { Field, Select } from './field.js';

/**
 * The filters of a list, kept in the URL without empty ones, so that the page can be bookmarked and shared. No personal
 * data may be a filter, because URLs are logged.
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

/** A filter of a list. */
interface Filter<N extends string> {
  name: N;
  label: string;
  /** An example of a value. */
  example?: string;
  /** All values, with their words. */
  options?: readonly (string | readonly [value: string, words: string])[];
  of?: Vocabulary;
  /** A moment, shown in the reader's zone and kept as RFC 3339. */
  isMoment?: boolean;
}

type Filters<N extends string> = Partial<Record<N, string>>;

/** The form of a list's filters, which apply when it is sent. Ids only, because they are part of the URL. */
export function FilterForm<N extends string>(props: {
  fields: readonly Filter<N>[];
  filters: Filters<N>;
  onChange: (filters: Filters<N>) => void;
}) {
  const { fields, filters, onChange } = props;
  const change = (textOf: (field: Filter<N>) => string) =>
    onChange(Object.fromEntries(fields.map((field) => [field.name, textOf(field)])) as Filters<N>);
  const search = (given: FormData) =>
    change(({ name, isMoment }) => {
      const text = String(given.get(name)).trim();
      // An unchanged moment stays as in the URL, which may be exact to the second, or the id of an entry.
      if (isMoment && text === fieldMoment(filters[name])) return filters[name] ?? '';
      return (isMoment && momentOf(text)) || text;
    });
  return (
    <search>
      <form
        className="filters"
        key={`${zone.use()} ${JSON.stringify(filters)}`}
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
              defaultValue={isMoment ? fieldMoment(filters[name]) : filters[name]}
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
