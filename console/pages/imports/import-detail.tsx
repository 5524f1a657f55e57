import type { UseQueryResult } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { Link } from 'wouter';
import { api } from '../../api/client.js';
import { queries, usePolling } from '../../api/queries.js';
import { Facts, Head, Section } from '../../parts/layout.js';
import { ErrorNote } from '../../parts/notes.js';
import { Loaded, useRead } from '../../parts/read.js';
import { State, StateOf } from '../../parts/state.js';
import { Copyable, Moment, number } from '../../parts/values.js';
import { type Corrections, useCorrections } from './corrections.js';
import { Guards } from './guards.js';
import { CancelEffect, ImportActions } from './import-actions.js';
import { ImportRows } from './import-rows.js';
import { MappingDetails, MappingForm } from './mapping.js';
import { ImportProgress, Numbers } from './numbers.js';
import { counted, doneSentence, faultOf, type Import, isOver, isRead, isWaiting, nameOf } from './words.js';

const FORMATS = { csv: 'CSV', ndjson: 'JSON lines', 'fhir-json': 'FHIR Bundle', 'fhir-ndjson': 'FHIR lines' };

/** One import: its plan, its progress, and the results of its rows. */
export function ImportDetail({ id }: { id: string }) {
  const query = useImport(id);
  const corrections = useCorrections();
  const view = query.data;
  const title = view && (
    <>
      {nameOf(view)}{' '}
      <span aria-live="polite">
        <ImportState view={view} />
      </span>
    </>
  );
  return (
    <>
      <Head back={['/imports', 'All imports']} title={title ?? 'Import'}>
        {view && <ImportActions view={view} unsent={corrections.count} />}
      </Head>
      <Loaded query={query}>{(shown) => <Shown view={shown} corrections={corrections} />}</Loaded>
    </>
  );
}

function Shown({ view, corrections }: { view: Import; corrections: Corrections }) {
  const { id, error, unclearRows } = view;
  const fault = isOver(view) ? undefined : faultOf(view);
  return (
    <>
      {fault && <ErrorNote error={new Error(fault)} />}
      {error && <ErrorNote error={new Error(error.message)} />}
      <ImportProgress view={view} />
      <WhatStays view={view} />
      {view.state === 'needs-mapping' && <MappingForm view={view} />}
      {unclearRows > 0 && (
        <p className="note">
          Nobody is deleted, because{' '}
          <Link href={`/imports/${id}?outcome=rejected`}>
            {counted(unclearRows, 'row does not identify a person', 'rows do not identify a person')}
          </Link>
          .
        </p>
      )}
      <Numbers view={view} />
      <Guards view={view} />
      <ImportRows view={view} corrections={corrections} />
      <Files view={view} />
      <About view={view} />
    </>
  );
}

/** What a paused or cancelled import leaves as it is. */
function WhatStays({ view }: { view: Import }) {
  const { id, state } = view;
  if (state === 'paused')
    return (
      <Section card title="Paused">
        <p>
          Nothing is sent for the people of this import until you resume it; only calls in flight finish. What is done
          stays: {doneSentence(view)} Changes by the EHR go on.
        </p>
        <p>If you cancel it now:</p>
        <CancelEffect id={id} />
      </Section>
    );
  if (state !== 'cancelled' || !isRead(view)) return null;
  const pending = (view.counts.pending ?? 0) + (view.deletes.pending ?? 0);
  return (
    <Section card title="Cancelled">
      <p>
        Rows that were not sent were taken back (skipped: the import was cancelled). What stays: {doneSentence(view)}
        {pending > 0 && ` ${counted(pending, 'row is', 'rows are')} still in progress.`}
      </p>
    </Section>
  );
}

/** Shows what was found in the files. */
function Files({ view: { files, repeatedIds, lostProviders } }: { view: Import }) {
  if (files.length === 0) return null;
  return (
    <Section card title="Files">
      {files.map((file) => {
        const content = `${file.name}: ${contentOf(file)}`;
        return file.mapping && !file.mapping.question ? (
          <MappingDetails key={file.name} content={content} mapping={file.mapping} />
        ) : (
          <p key={file.name}>{content}</p>
        );
      })}
      {repeatedIds > 0 && <p>{counted(repeatedIds, 'id occurs', 'ids occur')} in several rows.</p>}
      {lostProviders > 0 && (
        <p>{counted(lostProviders, 'reference')} from a client to a provider could not be resolved.</p>
      )}
    </Section>
  );
}

const KINDS = { providers: 'providers, ', clients: 'clients, ', both: 'providers and clients, ', fhir: '' };

const contentOf = ({ kind, format, rows, emptyIds }: Import['files'][number]) =>
  `${KINDS[kind]}${FORMATS[format]}, ${counted(rows, 'row')}${emptyIds > 0 ? `, ${number(emptyIds)} without an id` : ''}`;

function About({ view }: { view: Import }) {
  const { id, correctionOf, corrected } = view;
  const { data } = useRead(['imports', 'list', 'latest'], () => api.GET('/v1/imports'), { enabled: isOver(view) });
  const later = data?.items.filter((other) => other.correctionOf === id) ?? [];
  return (
    <Section card title="About this import">
      <Facts
        facts={{
          Id: <Copyable text={id} name="the id" />,
          'People not in these files': view.mode === 'snapshot' ? 'deleted' : 'kept',
          Started: <Moment at={view.createdAt} exact />,
          Ended: <Moment at={view.finishedAt} exact />,
          ...(view.defaultProvider && { 'Default provider': view.defaultProvider }),
          ...(corrected > 0 && { Corrected: counted(corrected, 'row') }),
          ...(correctionOf && {
            'Corrects rows of': <Link href={`/imports/${correctionOf}`}>an earlier import</Link>,
          }),
          ...(later.length > 0 && {
            'Rows corrected by': later.map((other) => (
              <div key={other.id}>
                <Link href={`/imports/${other.id}`}>{nameOf(other)}</Link> <ImportState view={other} />
              </div>
            )),
          }),
        }}
      />
    </Section>
  );
}

/** The state of an import. */
export function ImportState({ view: { state, guards } }: { view: Import }) {
  const needsConfirmation = state === 'planned' && guards.some(({ exceeded }) => exceeded);
  if (needsConfirmation) return <State tone="warn">Needs confirmation</State>;
  return <StateOf of="importState" state={state} />;
}

/** How often to read an import that waits for a decision, and one that changes by itself, in milliseconds. */
const WAITING_MS = 10_000;
const CHANGING_MS = 2_000;

/** Reads an import, again and again until it has ended. */
function useImport(id: string): UseQueryResult<Import> {
  const isPolled = usePolling(CHANGING_MS) !== false;
  const everyMs = (view: Import) => (isWaiting(view) ? WAITING_MS : CHANGING_MS);
  const query = useRead(['imports', id], () => api.GET('/v1/imports/{id}', { params: { path: { id } } }), {
    refetchInterval: ({ state: { data } }) => isPolled && data?.finishedAt === null && everyMs(data),
  });
  const state = query.data?.state;
  const before = useRef(state);
  // Each reading of the rows is on record in the audit log, so they are read again only if the state changes.
  useEffect(() => {
    if (before.current && before.current !== state) void queries.invalidateQueries({ queryKey: ['import-rows', id] });
    before.current = state;
  }, [id, state]);
  return query;
}
