import { Link } from 'wouter';
import { api } from '../../api/client.js';
import { FilterForm, useFilters } from '../../parts/filters.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { Moment } from '../../parts/values.js';
import { About, AuditEntry, Outcome } from './audit-entry.js';

/** What the audit log can be asked for; the names are those of `GET /v1/audit`. */
const FIELDS = [
  { name: 'client', label: 'Client', example: 'external id' },
  { name: 'provider', label: 'Provider', example: 'external id' },
  { name: 'session', label: 'Session', example: 'id here or there' },
  { name: 'subject', label: 'Anything else', example: 'id' },
  { name: 'keyId', label: 'Who', example: 'id of the key or person' },
  { name: 'action', label: 'Action', example: 'POST /v1/imports' },
  { name: 'after', label: 'From', isMoment: true },
  { name: 'before', label: 'Until', isMoment: true },
] as const;

/** Subjects of one entry that the table names; the entry itself names all. */
const NAMED = 4;

/** Who did what, and who saw whom: everything that was asked of the service, by ids alone. */
export default function AuditPage() {
  const [filters, setFilters] = useFilters(...FIELDS.map(({ name }) => name));
  const [{ entry: opened }, setOpened] = useFilters('entry');
  const isFiltered = Object.keys(filters).length > 0;
  const addressOf = (entry: string) => `/audit?${new URLSearchParams({ ...filters, entry })}`;
  return (
    <>
      <Head title="Audit" />
      <FilterForm fields={FIELDS} filters={filters} onChange={setFilters} />
      <List
        name={['audit', filters]}
        read={(cursor) => api.GET('/v1/audit', { params: { query: { ...filters, cursor } } })}
        empty={
          isFiltered
            ? 'The audit log has no such entry. Each id must be whole.'
            : 'Nothing was asked of the service yet.'
        }
        caption="Audit log, newest first"
        keyOf={({ id }) => id}
        columns={[
          [
            'When',
            ({ id, at }) => (
              <Link href={addressOf(id)}>
                <Moment at={at} exact />
              </Link>
            ),
          ],
          [
            'Who',
            ({ keyId, keyName, onBehalfOf }) => (
              <>
                <button type="button" className="link" title="Only what they did" onClick={() => setFilters({ keyId })}>
                  {keyName}
                </button>
                {onBehalfOf !== null && <div className="help">for {onBehalfOf}</div>}
              </>
            ),
          ],
          ['Action', ({ action }) => <code>{action}</code>, 'text'],
          ['About', (entry) => <About entry={entry} most={NAMED} />, 'text'],
          ['Outcome', ({ outcome }) => <Outcome outcome={outcome} />],
        ]}
      />
      {opened && <AuditEntry id={opened} onClose={() => setOpened({ entry: '' })} />}
    </>
  );
}
