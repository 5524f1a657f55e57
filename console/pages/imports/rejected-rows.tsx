import { labelOf, labelsOf } from '../../api/words.js';
import { DataTable } from '../../parts/layout.js';
import { ErrorNote } from '../../parts/notes.js';
import { State } from '../../parts/state.js';
import { type Cell, type Corrections, kindOf } from './corrections.js';
import { counted, type Import, keyOf, placeOf, type Row, reasonOf } from './words.js';

/** Cells with a column only if a row has a text in them. */
const RARE: readonly Cell[] = ['kind', 'platformUserId'];

interface Shown {
  rows: readonly Row[];
  view: Import;
  corrections: Corrections;
}

/** Rejected rows, corrected in place. */
export function RejectedRows({ rows, view, corrections }: Shown) {
  const { count, isPending, error, send } = corrections;
  const titles = (labelsOf('personField') as [Cell, string][]).filter(
    ([name]) => !RARE.includes(name) || rows.some(({ cells, field }) => cells?.[name] || field === name),
  );
  return (
    <>
      <DataTable
        caption="Rejected rows"
        rows={rows}
        keyOf={keyOf}
        columns={[
          ['Line', (row) => <Place row={row} view={view} />],
          ['Reason', reasonOf, 'text'],
          ...titles.map(
            ([name, title]) => [title, (row: Row) => <CellInput {...{ row, name, view, corrections }} />] as const,
          ),
        ]}
      />
      {error && <ErrorNote error={error} />}
      <p>
        <button type="button" className="primary" disabled={count === 0 || isPending} onClick={() => send(view)}>
          {view.state === 'planned'
            ? `Send ${counted(count, 'corrected row')} and plan again`
            : `Send ${counted(count, 'corrected row')} as a new import`}
        </button>{' '}
        <span className="help">Only changed rows are sent. Separate several providers by |.</span>
      </p>
    </>
  );
}

function Place({ row, view }: { row: Row; view: Import }) {
  return (
    <>
      {placeOf(row, view)} {row.corrected && <State>Corrected</State>}
    </>
  );
}

function CellInput({ row, name, view, corrections }: Omit<Shown, 'rows'> & { row: Row; name: Cell }) {
  // A merge is no correction of the row.
  if (row.code === 'merge-needed') return name === 'externalId' ? row.externalId : null;
  if (!row.cells)
    return name === 'externalId' ? 'The cells are no longer stored: correct this row in rejected.csv.' : null;
  if (name === 'providers' && kindOf(row, view) === 'provider') return null;
  const shared = {
    className: 'cell',
    'aria-label': `${labelOf('personField', name)} of line ${row.line} of ${row.file}`,
    'aria-invalid': row.field === name || undefined,
    // Typing must not render thousands of rows again.
    defaultValue: corrections.cellOf(row, name),
    onChange: ({ target }: { target: { value: string } }) => corrections.change(row, name, target.value),
  };
  if (name !== 'kind') return <input autoComplete="off" {...shared} />;
  const asRead = row.cells.kind;
  return (
    <select {...shared}>
      {asRead !== 'provider' && asRead !== 'client' && <option value={asRead}>{asRead}</option>}
      <option value="provider">provider</option>
      <option value="client">client</option>
    </select>
  );
}
