import type { UseQueryResult } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { api } from '../../api/client.js';
import { useEvents } from '../../api/live.js';
import { queries, usePolling } from '../../api/queries.js';
import { Facts, Head, Section } from '../../parts/layout.js';
import { ErrorNote } from '../../parts/notes.js';
import { Loaded, useRead } from '../../parts/read.js';
import { IMPORT, State } from '../../parts/state.js';
import { Copyable, Moment } from '../../parts/values.js';
import { Guards } from './guards.js';
import { ImportActions } from './import-actions.js';
import { ImportRows } from './import-rows.js';
import { ImportProgress, Numbers } from './numbers.js';
import { counted, type Import, isOver, nameOf } from './words.js';

const FORMATS = { csv: 'CSV', ndjson: 'JSON lines', 'fhir-json': 'FHIR Bundle', 'fhir-ndjson': 'FHIR lines' };

/** One import: its plan, where it stands, and what became of its rows. */
export function ImportDetail({ id }: { id: string }) {
  const query = useImport(id);
  const view = query.data;
  const title = view && (
    <>
      {nameOf(view)} <ImportState view={view} />
    </>
  );
  return (
    <>
      <Head back={['/imports', 'All imports']} title={title ?? 'Import'}>
        {view && <ImportActions view={view} />}
      </Head>
      <Loaded query={query}>{(shown) => <Shown view={shown} />}</Loaded>
    </>
  );
}

function Shown({ view }: { view: Import }) {
  const isSnapshot = view.mode === 'snapshot';
  return (
    <>
      {view.error && <ErrorNote error={new Error(view.error.message)} />}
      <ImportProgress view={view} />
      <Numbers view={view} />
      <Guards view={view} />
      {view.ignoredColumns.map(({ file, columns }) => (
        <p key={file} className="note">
          Nothing was read from {columns.length === 1 ? 'the column' : 'the columns'}{' '}
          <strong>{columns.join(', ')}</strong> of {file}. A misspelt name costs a whole column.
        </p>
      ))}
      <ImportRows view={view} />
      <Section card title="About this import">
        <Facts
          facts={{
            Id: <Copyable text={view.id} name="the id" />,
            Mode: isSnapshot ? 'snapshot: whoever is missing is deleted' : 'upsert: nobody is deleted',
            Begun: <Moment at={view.createdAt} exact />,
            Ended: <Moment at={view.finishedAt} exact />,
            Files: view.files.map((file, at) => <div key={at}>{`${file.name}: ${contentOf(file)}`}</div>),
          }}
        />
      </Section>
    </>
  );
}

const contentOf = ({ kind, format, rows }: Import['files'][number]) =>
  `${kind === 'fhir' ? '' : `${kind}, `}${FORMATS[format]}, ${counted(rows, 'row')}`;

/** A plan that a guard holds back says so: somebody must decide. */
export function ImportState({ view }: { view: Import }) {
  const isHeld = view.state === 'planned' && view.guards.some(({ exceeded }) => exceeded);
  return <State tone={IMPORT[view.state]}>{isHeld ? 'planned, held back' : view.state}</State>;
}

/** Milliseconds after which an import is read again though no event came. */
const LOOK_MS = 10_000;

/** One import, as its own events change it. */
function useImport(id: string): UseQueryResult<Import> {
  const everyMs = usePolling(LOOK_MS);
  const query = useRead(['imports', id], () => api.GET('/v1/imports/{id}', { params: { path: { id } } }), {
    refetchInterval: ({ state: { data } }) => data !== undefined && !isOver(data) && everyMs,
  });
  const { data: view } = query;
  useEvents<Import>(everyMs !== false && view && !isOver(view) && `/v1/imports/${id}/events`, 'progress', (changed) =>
    queries.setQueryData(['imports', id], changed),
  );
  const state = view?.state;
  const before = useRef(state);
  // Its rows stand in the audit trail each time they are read: at its own steps only.
  useEffect(() => {
    if (before.current && before.current !== state) void queries.invalidateQueries({ queryKey: ['import-rows', id] });
    before.current = state;
  }, [id, state]);
  return query;
}
