import { skipToken, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/client.js';
import { queries } from '../../api/queries.js';

/** The terms of a search. */
export type Wanted = Schemas['SearchRequest'];

const KEY = ['searched'];

/**
 * The last search, for the way back from a person. It is stored only in memory, with the query results that signing out
 * clears, because an email must not appear in a URL or in the history of the browser.
 */
export function useSearched(): Wanted | null {
  const { data } = useQuery<Wanted | null>({ queryKey: KEY, queryFn: skipToken, gcTime: Number.POSITIVE_INFINITY });
  return data ?? null;
}

export function search(wanted: Wanted | null): void {
  queries.setQueryData(KEY, wanted);
}

/** Searches for a person. The terms are sent in a body, because URLs are logged. */
export function PeopleSearch(props: { searched: Wanted | null; onSearch: (wanted: Wanted | null) => void }) {
  const { searched, onSearch } = props;
  const [by, setBy] = useState<'email' | 'externalId'>(searched?.email === undefined ? 'externalId' : 'email');
  const [text, setText] = useState(searched?.email ?? searched?.externalId ?? '');
  return (
    <search>
      <form
        className="buttons"
        onSubmit={(event) => {
          event.preventDefault();
          onSearch({ [by]: text.trim() });
        }}
      >
        <select aria-label="Search by" value={by} onChange={({ target }) => setBy(target.value as typeof by)}>
          <option value="externalId">External id</option>
          <option value="email">Email</option>
        </select>
        <input
          type="search"
          name={by}
          aria-label={by === 'email' ? 'The exact email' : 'The exact external id'}
          placeholder={by === 'email' ? 'name@example.org' : 'C-1'}
          autoComplete="off"
          spellCheck={false}
          required
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        <button type="submit">Search</button>
        {searched && (
          <button
            type="button"
            onClick={() => {
              setText('');
              onSearch(null);
            }}
          >
            Back to the list
          </button>
        )}
      </form>
    </search>
  );
}
