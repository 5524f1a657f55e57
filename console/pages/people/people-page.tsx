import { useLocation } from 'wouter';
import { api, type Schemas } from '../../api/client.js';
import { labelOf } from '../../api/words.js';
import { Select } from '../../parts/field.js';
import { useFilters } from '../../parts/filters.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { PERSON, wordIn, wordsOf } from '../../parts/state.js';
import { PeopleSearch, search, useSearched, type Wanted } from './people-search.js';
import { COLUMNS, KINDS, type Kind, keyOf, personOf } from './person.js';
import { PersonPage } from './person-page.js';

/** The person in the URL. Otherwise the filtered clients or providers; without a filter, the results of the last search. */
export default function PeoplePage() {
  const [, navigate] = useLocation();
  const [filters] = useFilters('kind', 'state');
  const searched = useSearched();
  const person = personOf(window.location.pathname);
  if (person) return <PersonPage key={keyOf(person)} person={person} />;
  const shown = Object.keys(filters).length === 0 ? searched : null;
  return (
    <>
      <Head title="People">
        <PeopleSearch
          searched={shown}
          onSearch={(wanted) => {
            search(wanted);
            navigate('/people');
          }}
        />
      </Head>
      {shown ? <Found wanted={shown} /> : <ByState />}
    </>
  );
}

function Found({ wanted }: { wanted: Wanted }) {
  const by = wanted.email === undefined ? 'external id' : 'email';
  return (
    <List
      name={['people', 'search', wanted]}
      read={() => api.POST('/v1/people/search', { body: wanted })}
      empty={`No person has this ${by}. Enter the whole ${by}; deleted people are not found.`}
      caption="People found"
      keyOf={keyOf}
      columns={COLUMNS}
    />
  );
}

function ByState() {
  const [filters, setFilters] = useFilters('kind', 'state');
  const kind = KINDS.find((known) => known === filters.kind) ?? 'client';
  const state = wordIn(PERSON, filters.state);
  const read = (cursor: string | undefined) => {
    const options = { params: { query: { cursor, state } } };
    return kind === 'client' ? api.GET('/v1/clients', options) : api.GET('/v1/providers', options);
  };
  return (
    <>
      <div className="bar">
        <Select
          label="Kind"
          options={KINDS.map((name) => [name, `${name}s`] as const)}
          value={kind}
          onChange={(kind) => setFilters({ kind: kind === 'client' ? '' : kind })}
        />
        <Select
          label="State"
          none="all but deleted"
          options={wordsOf(PERSON)}
          of="personState"
          value={state}
          onChange={(state) => setFilters({ state })}
        />
      </div>
      <List
        name={['people', kind, state]}
        read={read}
        empty={emptyList(kind, state)}
        caption={`${kind}s`}
        keyOf={keyOf}
        columns={COLUMNS.filter(([title]) => title !== 'Kind')}
      />
    </>
  );
}

function emptyList(kind: Kind, state: Schemas['SyncResponse']['state'] | undefined): string {
  if (state) return `No ${kind} has the state “${labelOf('personState', state)}”.`;
  return `There is no ${kind} yet. Add ${kind}s by an import, or by PUT /v1/${kind}s/{externalId}.`;
}
