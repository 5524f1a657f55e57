import { Link } from 'wouter';
import { api } from '../../api/client.js';
import { useFilters } from '../../parts/filters.js';
import { DataTable, Section } from '../../parts/layout.js';
import { Paged } from '../../parts/read.js';
import { State } from '../../parts/state.js';
import { personAddress } from '../people/person.js';
import { RejectedRows, RejectedSample } from './rejected-rows.js';
import {
  type Import,
  keyOf,
  OUTCOME_TONES,
  OUTCOMES,
  type Outcome,
  PLANNED,
  placeOf,
  type Row,
  reasonOf,
} from './words.js';

type Planned = keyof typeof PLANNED;

/** The rows behind a number of the import, or all of them. */
export function ImportRows({ view }: { view: Import }) {
  const [filters, change] = useFilters('outcome', 'planned');
  const { id } = view;
  const outcome = filters.outcome as Outcome | undefined;
  const planned = filters.planned as Planned | undefined;
  const cells = outcome === 'rejected';
  if (view.state === 'staging') return null;
  const isFiltered = Boolean(outcome || planned);
  const showAll = (
    <button type="button" onClick={() => change({ outcome: '', planned: '' })}>
      Show all rows
    </button>
  );
  return (
    <>
      {view.state === 'planned' && !isFiltered && (view.counts.rejected ?? 0) > 0 && <RejectedSample view={view} />}
      <Section title={titleOf(outcome, planned)} aside={isFiltered && showAll}>
        <Paged<Row>
          name={['import-rows', id, outcome, planned]}
          read={(cursor) =>
            api.GET('/v1/imports/{id}/rows', { params: { path: { id }, query: { outcome, planned, cells, cursor } } })
          }
          empty="There are no such rows."
        >
          {(rows) => (cells ? <RejectedRows rows={rows} view={view} /> : <RowTable rows={rows} />)}
        </Paged>
      </Section>
    </>
  );
}

function titleOf(outcome: Outcome | undefined, planned: Planned | undefined): string {
  if (outcome) return `Rows ${OUTCOMES[outcome] ?? outcome}`;
  return planned ? `Rows ${PLANNED[planned] ?? planned}` : 'Rows';
}

function RowTable({ rows }: { rows: readonly Row[] }) {
  return (
    <DataTable
      caption="Rows of the import"
      rows={rows}
      keyOf={keyOf}
      columns={[
        ['Person', (row) => <Person row={row} />],
        ['File and line', placeOf, 'text'],
        ['Outcome', ({ outcome }) => <State tone={OUTCOME_TONES[outcome]}>{OUTCOMES[outcome]}</State>],
        ['Reason', reasonOf, 'text'],
      ]}
    />
  );
}

/** The person of a row; nobody is known by a rejected one. */
function Person({ row: { kind, externalId, outcome } }: { row: Row }) {
  if (!kind || externalId === null) return <span className="quiet">nobody</span>;
  if (outcome === 'rejected') return <>{externalId}</>;
  return <Link href={personAddress({ kind, externalId })}>{externalId}</Link>;
}
