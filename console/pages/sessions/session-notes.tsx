import { useState } from 'react';
import { api, type Schemas } from '../../api/client.js';
import { Read } from '../../parts/read.js';
import { Moment, number } from '../../parts/values.js';
import { NoteText, Template } from './note-text.js';
import { Revisions } from './revisions.js';

/** The notes of a session, one document for each template. */
export function SessionNotes({ id }: { id: string }) {
  return (
    <Read name={['notes', id]} call={() => api.GET('/v1/sessions/{id}/notes', { params: { path: { id } } })}>
      {({ documents }) =>
        documents.length === 0 ? (
          <p className="quiet">There are no notes yet. They appear when the platform has processed the session.</p>
        ) : (
          documents.map((document) => <DocumentShown key={document.documentId} id={id} document={document} />)
        )
      }
    </Read>
  );
}

function DocumentShown({ id, document }: { id: string; document: Schemas['DocumentResponse'] }) {
  const { documentId, noteTemplateId, noteTemplateName, revision, fetchedAt, supersededAt, incomplete } = document;
  const [isCompared, setCompared] = useState(false);
  return (
    <article className="card" aria-label={`Notes by template ${noteTemplateName ?? noteTemplateId}`}>
      <div className="bar">
        <h3>
          {noteTemplateName === null && 'Template '}
          <Template id={noteTemplateId} name={noteTemplateName} />
        </h3>
        {revision > 1 && (
          <button type="button" aria-expanded={isCompared} onClick={() => setCompared(!isCompared)}>
            {isCompared ? 'Hide revisions' : `Revisions (${number(revision)})`}
          </button>
        )}
      </div>
      <p className="help">
        Revision {number(revision)}, fetched <Moment at={fetchedAt} />
        {supersededAt && (
          <>
            ; no longer on the platform since <Moment at={supersededAt} exact />
          </>
        )}
      </p>
      {incomplete && (
        <p>
          <strong>Incomplete:</strong> parts of these notes could not be read. The platform has the complete document.
        </p>
      )}
      {isCompared ? <Revisions id={id} documentId={documentId} /> : <NoteText version={document} />}
    </article>
  );
}
