import { useState } from 'react';
import { Link, Route, Switch, useLocation } from 'wouter';
import { api } from '../../api/client.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { Moment, number } from '../../parts/values.js';
import { ImportDetail, ImportState } from './import-detail.js';
import { type Chosen, NewImport } from './new-import.js';
import './imports.css';
import { useDrop } from '../../parts/use-drop.js';
import { nameOf } from './words.js';

/** The change feed reports only the end of an import. */
const POLL_INTERVAL_MS = 5_000;

/** Bulk imports: the list, and each by its id. Files may be dropped on any of these pages. */
export default function ImportsPage() {
  const [chosen, setChosen] = useState<readonly Chosen[]>([]);
  const [, navigate] = useLocation();
  const add = (files: FileList) => {
    const added = [...files].map((file) => ({ file }));
    setChosen((before) => [...before, ...added]);
  };
  const isOver = useDrop((files) => {
    add(files);
    navigate('/imports/new');
  });
  return (
    <>
      {isOver && <p className="dropping">Drop the files to import them</p>}
      <Switch>
        <Route path="/imports/new">
          <NewImport chosen={chosen} onAdd={add} onChange={setChosen} />
        </Route>
        <Route path="/imports/:id">{({ id }) => <ImportDetail key={id} id={id} />}</Route>
        <Route>
          <Imports />
        </Route>
      </Switch>
    </>
  );
}

/** Imports, newest first. */
function Imports() {
  return (
    <>
      <Head title="Imports">
        <Link className="button primary" href="/imports/new">
          Import files
        </Link>
      </Head>
      <List
        name={['imports', 'list']}
        read={(cursor) => api.GET('/v1/imports', { params: { query: { cursor } } })}
        everyMs={POLL_INTERVAL_MS}
        empty="No imports yet. Drop an export of the EHR on this page to preview it."
        caption="Imports"
        keyOf={({ id }) => id}
        columns={[
          ['Files', (view) => <Link href={`/imports/${view.id}`}>{nameOf(view)}</Link>, 'text'],
          ['State', (view) => <ImportState view={view} />],
          ['People not in the files', ({ mode }) => (mode === 'snapshot' ? 'deleted' : 'kept')],
          ['Rows', ({ counts }) => number(counts.total ?? 0), 'number'],
          ['Need attention', ({ needAttention }) => number(needAttention), 'number'],
          ['Calls', ({ calls }) => number(calls.made), 'number'],
          ['Started', ({ createdAt }) => <Moment at={createdAt} />],
        ]}
      />
    </>
  );
}
