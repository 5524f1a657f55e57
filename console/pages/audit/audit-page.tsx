import { Link } from 'wouter';
import { api } from '../../api/client.js';
import { labelsOf } from '../../api/words.js';
import { FilterForm, useFilters } from '../../parts/filters.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { Moment } from '../../parts/values.js';
import { About, AuditEntry, Outcome } from './audit-entry.js';

/** The filters of the audit log, with their names in `GET /v1/audit`. */
const FIELDS = [
  { name: 'client', label: 'Client', example: 'external id' },
  { name: 'provider', label: 'Provider', example: 'external id' },
  { name: 'session', label: 'Session', example: 'our id or the platform’s' },
  { name: 'subject', label: 'Other id', example: 'id' },
  { name: 'keyId', label: 'Caller', example: 'id of a key or person' },
  { name: 'action', label: 'Action' },
  { name: 'after', label: 'From', isMoment: true },
  { name: 'before', label: 'Until', isMoment: true },
] as const;

/** Lets one of the known actions be chosen, or the one of the URL. */
function fieldsWith(current: string | undefined) {
  const known = labelsOf('auditAction');
  const isKnown = current === undefined || known.some(([action]) => action === current);
  const options = isKnown ? known : [...known, [current, current] as const];
  return FIELDS.map((field) => (field.name === 'action' ? { ...field, options } : field));
}

/** Subjects of one entry that the table names; the entry itself names all. */
const NAMED = 4;

/** The audit log as sentences: who did what, and whose data it showed. Ids only. */
export default function AuditPage() {
  const [filters, setFilters] = useFilters(...FIELDS.map(({ name }) => name));
  const [{ entry: opened }, setOpened] = useFilters('entry');
  const isFiltered = Object.keys(filters).length > 0;
  const addressOf = (entry: string) => `/audit?${new URLSearchParams({ ...filters, entry })}`;
  return (
    <>
      <Head title="Audit" />
      <FilterForm fields={fieldsWith(filters.action)} filters={filters} onChange={setFilters} />
      <List
        name={['audit', filters]}
        read={(cursor) => api.GET('/v1/audit', { params: { query: { ...filters, cursor } } })}
        empty={isFiltered ? 'No entry matches the filters. Ids must be complete.' : 'No requests yet.'}
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
            'What happened',
            ({ keyId, keyName, onBehalfOf, summary, action }) => (
              <>
                <button
                  type="button"
                  className="link"
                  title="Show only this caller"
                  onClick={() => setFilters({ keyId })}
                >
                  {keyName}
                </button>
                {onBehalfOf !== null && ` (for ${onBehalfOf})`}{' '}
                <button
                  type="button"
                  className="link plain"
                  title={`Show only ${action}`}
                  onClick={() => setFilters({ action })}
                >
                  {summary}
                </button>
              </>
            ),
            'text',
          ],
          ['About', (entry) => <About entry={entry} most={NAMED} />, 'text'],
          ['Outcome', ({ outcome }) => <Outcome outcome={outcome} />],
        ]}
      />
      {opened && <AuditEntry id={opened} onClose={() => setOpened({ entry: '' })} />}
    </>
  );
}
