import { Link } from 'wouter';
import type { operations } from '../../../client/schema.js';
import { api } from '../../api/client.js';
import { codeIn, inSentence, labelOf } from '../../api/words.js';
import { useFilters } from '../../parts/filters.js';
import { DataTable, Section } from '../../parts/layout.js';
import { Paged } from '../../parts/read.js';
import { State } from '../../parts/state.js';
import { personAddress } from '../people/person.js';
import type { Corrections } from './corrections.js';
import { RejectedRows } from './rejected-rows.js';
import {
  type Import,
  isLive,
  isRead,
  keyOf,
  labelOfReason,
  OUTCOME_TONES,
  placeOf,
  type Row,
  reasonOf,
} from './words.js';

type Planned = NonNullable<NonNullable<operations['Imports.listRows']['parameters']['query']>['planned']>;

/** How often to read the newest rows, in milliseconds. */
const NEWEST_MS = 10_000;

/** Outcomes that rows have before they are applied. */
const KNOWN_BEFORE: Row['outcome'][] = ['pending', 'unchanged', 'rejected'];

/**
 * The rows behind a number of the import, or all of them; of an import that is being carried out, what happened last, read
 * again and again. Each reading is on record in the audit log, so this is not done more often, and not for other rows.
 */
export function ImportRows({ view, corrections }: { view: Import; corrections: Corrections }) {
  const [filters, change] = useFilters('outcome', 'planned', 'code');
  const outcome = codeIn<Row['outcome']>('rowOutcome', filters.outcome);
  const planned = codeIn<Planned>('plannedOutcome', filters.planned);
  const { code } = filters;
  if (!isRead(view)) return null;
  const { id } = view;
  const cells = outcome === 'rejected';
  const words = [
    outcome && labelOf('rowOutcome', outcome),
    planned && labelOf('plannedOutcome', planned),
    code && labelOfReason(code),
  ].flatMap((label) => (label ? inSentence(label) : []));
  const showAll = (
    <button type="button" onClick={() => change({ outcome: '', planned: '', code: '' })}>
      Show all rows
    </button>
  );
  const isNewest = isLive(view) && !planned && !(outcome && KNOWN_BEFORE.includes(outcome));
  const order = isNewest ? ('newest' as const) : ('file' as const);
  const query = { outcome, planned, code, cells, order };
  const what = isNewest ? 'Newest results' : 'Rows';
  return (
    <Section title={words.length > 0 ? `${what}: ${words.join(', ')}` : what} aside={words.length > 0 && showAll}>
      <Paged<Row>
        name={['import-rows', id, outcome, planned, code, order]}
        read={(cursor) => api.GET('/v1/imports/{id}/rows', { params: { path: { id }, query: { ...query, cursor } } })}
        everyMs={isNewest ? NEWEST_MS : 0}
        empty={isNewest ? 'No person is finished yet.' : 'There are no such rows.'}
      >
        {(rows) =>
          cells ? (
            <RejectedRows rows={rows} view={view} corrections={corrections} />
          ) : (
            <RowTable rows={rows} view={view} />
          )
        }
      </Paged>
    </Section>
  );
}

function RowTable({ rows, view }: { rows: readonly Row[]; view: Import }) {
  return (
    <DataTable
      caption="Rows of the import"
      rows={rows}
      keyOf={keyOf}
      columns={[
        ['Person', (row) => <Person row={row} />],
        ['Line', (row) => placeOf(row, view), 'text'],
        ['Outcome', (row) => <Outcome row={row} />],
        ['Reason', reasonOf, 'text'],
      ]}
    />
  );
}

function Outcome({ row: { outcome, corrected } }: { row: Row }) {
  return (
    <>
      <State tone={OUTCOME_TONES[outcome]}>{labelOf('rowOutcome', outcome)}</State>{' '}
      {corrected && <State>Corrected</State>}
    </>
  );
}

/** Leads to the person, unless the row was rejected. */
function Person({ row: { kind, externalId, outcome } }: { row: Row }) {
  if (!kind || externalId === null) return <span className="quiet">unknown</span>;
  if (outcome === 'rejected') return <>{externalId}</>;
  return <Link href={personAddress({ kind, externalId })}>{externalId}</Link>;
}
