import { useRoute } from 'wouter';
import { api } from '../../api/client.js';
import { FilterForm, useFilters } from '../../parts/filters.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { SESSION, StateOf, wordIn, wordsOf } from '../../parts/state.js';
import { IdLink, Moment, number } from '../../parts/values.js';
import { PersonLink, PersonLinks } from '../people/person-link.js';
import { SessionDetail } from './session-detail.js';
import './sessions.css';

const FIELDS = [
  { name: 'state', label: 'State', options: wordsOf(SESSION), of: 'sessionState' },
  { name: 'provider', label: 'Provider', example: 'external id' },
  { name: 'client', label: 'Client', example: 'external id' },
  { name: 'appointment', label: 'Appointment', example: 'id in the EHR' },
] as const;

/** Sessions with their notes. */
export default function SessionsPage() {
  const [, params] = useRoute<{ id: string }>('/sessions/:id');
  return params ? <SessionDetail key={params.id} id={params.id} /> : <Sessions />;
}

/** Sessions, last changed first. */
function Sessions() {
  const [filters, setFilters] = useFilters(...FIELDS.map(({ name }) => name));
  const query = { ...filters, state: wordIn(SESSION, filters.state), order: 'newest-first' as const };
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <Head title="Sessions" />
      <FilterForm fields={FIELDS} filters={filters} onChange={setFilters} />
      <List
        name={['sessions', query]}
        read={(cursor) => api.GET('/v1/sessions', { params: { query: { ...query, cursor } } })}
        empty={
          isFiltered
            ? 'No session matches the filters.'
            : 'There are no sessions yet. They appear when the EHR requests them, or when the platform’s webhooks report them.'
        }
        caption="Sessions"
        keyOf={({ id }) => id}
        columns={[
          [
            'Session',
            ({ id, partnerAppointmentId }) => (
              <>
                <IdLink href={`/sessions/${id}`} id={id} />
                {partnerAppointmentId && <div className="help">Appointment {partnerAppointmentId}</div>}
              </>
            ),
            'text',
          ],
          ['State', ({ state }) => <StateOf of="sessionState" state={state} />],
          [
            'Clients',
            ({ clients }) => <PersonLinks people={clients.map((id) => ({ kind: 'client', externalId: id }))} />,
          ],
          [
            'Provider',
            ({ provider }) => provider && <PersonLink person={{ kind: 'provider', externalId: provider }} />,
          ],
          ['Date', ({ date }) => <Moment at={date} exact />],
          ['Revision', ({ notesRevision }) => notesRevision > 0 && number(notesRevision), 'number'],
          ['Changed', ({ updatedAt }) => <Moment at={updatedAt} />],
        ]}
      />
    </>
  );
}
