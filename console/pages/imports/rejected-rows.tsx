import { type ReactNode, useRef, useState } from 'react';
import { api } from '../../api/client.js';
import { DataTable, Section } from '../../parts/layout.js';
import { ErrorNote } from '../../parts/notes.js';
import { Read } from '../../parts/read.js';
import { type Part, useUpload } from './upload.js';
import { counted, type Import, keyOf, placeOf, type Row, reasonOf } from './words.js';

const CELLS = [
  ['externalId', 'External id'],
  ['email', 'Email'],
  ['firstName', 'First name'],
  ['lastName', 'Last name'],
  ['providers', 'Providers'],
] as const;
type Cell = (typeof CELLS)[number][0];

/** Rejected rows of a plan that are shown before somebody asks for all. */
const SAMPLE = 5;

/** Some of the rejected rows, so that whoever reads a plan sees what kind of rows it leaves out. */
export function RejectedSample({ view: { id, counts } }: { view: Import }) {
  const query = { outcome: 'rejected', cells: true, limit: SAMPLE } as const;
  return (
    <Read
      name={['import-rows', id, 'sample']}
      call={() => api.GET('/v1/imports/{id}/rows', { params: { path: { id }, query } })}
    >
      {({ items }) => (
        <Section title={`Rejected: ${items.length} of ${counted(counts.rejected ?? 0, 'row')}`}>
          <RejectedTable rows={items}>{(row, name) => <SampleCell row={row} name={name} />}</RejectedTable>
        </Section>
      )}
    </Read>
  );
}

function SampleCell({ row: { cells, field }, name }: { row: Row; name: Cell }) {
  const text = cells?.[name];
  return field === name ? <mark>{text || 'empty'}</mark> : text;
}

/** Rejected rows with their cells, to be corrected in place; the corrected ones are sent as a new import. */
export function RejectedRows({ rows, view }: { rows: readonly Row[]; view: Import }) {
  // Only their number is shown: thousands of rows must not be rendered anew with each letter that is typed.
  const corrected = useRef(new Map<string, Corrected>()).current;
  const [count, setCount] = useState(0);
  const sending = useUpload();
  const change = (row: Row, name: Cell, value: string) => {
    const cells = corrected.get(keyOf(row))?.cells ?? row.cells;
    if (cells) corrected.set(keyOf(row), { row, cells: { ...cells, [name]: value } });
    setCount(corrected.size);
  };
  const send = () =>
    sending.send(partsOf([...corrected.values()], view), {
      mode: 'upsert',
      dryRun: true,
      defaultProvider: view.defaultProvider ?? undefined,
    });
  return (
    <>
      <RejectedTable rows={rows}>
        {(row, name) =>
          row.cells &&
          !(name === 'providers' && isProvider(row, view)) && (
            <input
              className="cell"
              aria-label={`${CELLS.find(([each]) => each === name)?.[1]} of line ${row.line} of ${row.file}`}
              aria-invalid={row.field === name || undefined}
              autoComplete="off"
              defaultValue={row.cells[name]}
              onChange={({ target }) => change(row, name, target.value)}
            />
          )
        }
      </RejectedTable>
      {sending.error && <ErrorNote error={sending.error} />}
      <p>
        <button type="button" className="primary" disabled={count === 0 || sending.isPending} onClick={send}>
          Send {counted(count, 'corrected row')} and plan
        </button>{' '}
        <span className="help">Rows that you leave as they are are not sent. Several providers are split by |.</span>
      </p>
    </>
  );
}

/** Where each row stands, why it was rejected, and its cells. */
function RejectedTable(props: { rows: readonly Row[]; children: (row: Row, name: Cell) => ReactNode }) {
  const { rows, children } = props;
  const ifKept = (row: Row, name: Cell) =>
    row.cells || name !== 'externalId' ? children(row, name) : 'The cells are not kept: correct rejected.csv.';
  return (
    <DataTable
      caption="Rejected rows"
      rows={rows}
      keyOf={keyOf}
      columns={[
        ['Line', placeOf],
        ['Reason', reasonOf, 'text'],
        ...CELLS.map(([name, title]) => [title, (row: Row) => ifKept(row, name)] as const),
      ]}
    />
  );
}

/** A rejected row that somebody corrected. */
interface Corrected {
  row: Row;
  cells: NonNullable<Row['cells']>;
}

/** Whether a row is a provider's: it says so, or its file does. */
function isProvider({ kind, file }: Row, { files }: Import): boolean {
  return kind ? kind === 'provider' : files.find(({ name }) => name === file)?.kind === 'providers';
}

/** Corrected rows as JSON lines, providers and clients apart; an empty cell is left out, and so says nothing. */
function partsOf(corrected: readonly Corrected[], view: Import): Part[] {
  return (['providers', 'clients'] as const).flatMap((kind) => {
    const lines = corrected
      .filter(({ row }) => isProvider(row, view) === (kind === 'providers'))
      .map(({ cells: { providers, ...person } }) => {
        const named = providers.split('|').flatMap((one) => one.trim() || []);
        const said = Object.entries(person).flatMap(([name, value]) => (value.trim() ? [[name, value.trim()]] : []));
        return JSON.stringify({
          ...Object.fromEntries(said),
          ...(kind === 'clients' && named.length > 0 && { providers: named }),
        });
      });
    const content = new Blob([lines.join('\n')], { type: 'application/x-ndjson' });
    return lines.length > 0 ? [{ kind, name: `corrected-${kind}.ndjson`, content }] : [];
  });
}
