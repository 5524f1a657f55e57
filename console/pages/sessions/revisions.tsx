import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type Schemas } from '../../api/client.js';
import { Select } from '../../parts/field.js';
import { Loaded, Paged } from '../../parts/read.js';
import { script } from '../../parts/script.js';
import { Moment, number } from '../../parts/values.js';
import { textOf } from './note-outline.js';
import { NoteText } from './note-text.js';
import { phrasesOf } from './phrases.js';

type Revision = Schemas['RevisionResponse'];

/** Revisions per request. */
const PAGE = 20;

/** One revision of a document, optionally compared with another one. */
export function Revisions({ id, documentId }: { id: string; documentId: string }) {
  const path = { id, documentId };
  return (
    <Paged
      name={['revisions', id, documentId]}
      read={(cursor) =>
        api.GET('/v1/sessions/{id}/notes/{documentId}/revisions', { params: { path, query: { limit: PAGE, cursor } } })
      }
      empty="No revisions."
    >
      {(revisions) => <Compared revisions={revisions} />}
    </Paged>
  );
}

/** @param revisions newest first */
function Compared({ revisions }: { revisions: readonly Revision[] }) {
  const [shown, setShown] = useState<string | undefined>(String(revisions[0]?.revision));
  const [base, setBase] = useState<string | undefined>(String(revisions[1]?.revision));
  const after = revisions.find(({ revision }) => String(revision) === shown);
  const before = revisions.find(({ revision }) => String(revision) === base);
  const options = revisions.map(({ revision }) => [String(revision), `revision ${number(revision)}`] as const);
  const isReadable = (revision: Revision) => !revision.removedAt && !revision.unreadable;
  if (!after) return null;
  return (
    <>
      <div className="bar">
        <Select label="Show" options={options} value={shown} onChange={setShown} />
        <Select label="Compare with" none="nothing" options={options} value={base} onChange={setBase} />
      </div>
      <p className="help">
        Fetched <Moment at={after.fetchedAt} exact />
      </p>
      {before && isReadable(after) && isReadable(before) ? (
        <WordDiff before={textOf(before.notes)} after={textOf(after.notes)} />
      ) : (
        <NoteText version={after} />
      )}
    </>
  );
}

/** Timeout for the comparison of two texts, because it blocks the page. */
const DIFF_TIMEOUT_MS = 2_000;

/** The removed and added words. */
function WordDiff({ before, after }: { before: string; after: string }) {
  const query = useQuery({
    queryKey: ['library', 'diff'],
    queryFn: () => script(() => import('diff')),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (before === after) return <p className="quiet">The two revisions are equal.</p>;
  return (
    <Loaded query={query}>
      {(diff) => {
        const pieces = diff.diffWordsWithSpace(before, after, { timeout: DIFF_TIMEOUT_MS }) ?? [
          { value: before, removed: true, added: false },
          { value: after, removed: false, added: true },
        ];
        return (
          <div className="note-text diff">
            {phrasesOf(pieces).map(({ value, added, removed }, at) => {
              const Part = added ? 'ins' : removed ? 'del' : 'span';
              return <Part key={at}>{value}</Part>;
            })}
          </div>
        );
      }}
    </Loaded>
  );
}
