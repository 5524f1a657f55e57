import { useMutation } from '@tanstack/react-query';
import type { KeyboardEvent } from 'react';
import { Link } from 'wouter';
import { api, body, type Schemas } from '../api/client.js';
import { type Scope, useScopes } from '../api/session.js';
import { Dialog } from '../parts/action.js';
import { Field } from '../parts/field.js';
import { ErrorNote } from '../parts/notes.js';
import { State } from '../parts/state.js';
import { Moment } from '../parts/values.js';
import { PAGES } from './pages.js';

type Found = Schemas['FoundResponse'];

/** The word for each kind, and its pages. */
const KINDS: Readonly<Record<Found['kind'], readonly [word: string, path: string]>> = {
  provider: ['Provider', '/people/provider'],
  client: ['Client', '/people/client'],
  session: ['Session', '/sessions'],
  'compliance-job': ['Compliance job', '/compliance'],
  import: ['Import', '/imports'],
  delivery: ['Delivery', '/deliveries'],
};

const MATCHED: Readonly<Record<Found['matched'], string>> = {
  id: 'by id',
  'former-id': 'by former id',
  'platform-id': 'by platform id',
  email: 'by email',
  appointment: 'by appointment',
};

/** The kinds that a search covers, with the scope that each needs. */
const SEARCHED: readonly (readonly [scope: Scope, what: string])[] = [
  ['people:read', 'people'],
  ['sessions:read', 'sessions'],
  ['compliance', 'compliance jobs'],
  ['imports', 'imports'],
  ['webhooks', 'deliveries'],
];

/** Searches everything that the caller may see. The text goes in a body, because URLs are logged. */
export default function SearchDialog({ onClose }: { onClose: () => void }) {
  const search = useMutation({ mutationFn: (text: string) => body(api.POST('/v1/search', { body: { text } })) });
  return (
    <Dialog
      title="Find by id or email"
      close="Close"
      buttons={
        <button type="submit" className="primary" disabled={search.isPending}>
          {search.isPending ? 'Searching…' : 'Find'}
        </button>
      }
      onClose={onClose}
      onSubmit={(given) => search.mutate(String(given.get('text')).trim())}
    >
      <search onKeyDown={moveFocus}>
        <Field
          label="Id or email"
          name="text"
          enterKeyHint="search"
          required
          maxLength={254}
          aria-describedby="search-help"
        />
        <p id="search-help" className="help">
          Enter a complete email or id: of a person, an appointment, a session, a compliance job, an import or a
          delivery.
        </p>
        <div role="status">{search.data && <Results found={search.data} onOpen={onClose} />}</div>
      </search>
      {search.error && <ErrorNote error={search.error} />}
    </Dialog>
  );
}

function Results({ found: { items, more }, onOpen }: { found: Schemas['FindResponse']; onOpen: () => void }) {
  const scopes = useScopes();
  const hidden = SEARCHED.filter(([scope]) => !scopes.includes(scope)).map(([, what]) => what);
  return (
    <>
      {items.length === 0 ? (
        <p>Nothing has exactly this id or email. Names are encrypted, so they cannot be searched.</p>
      ) : (
        <ul className="plain found">
          {items.map((item) => (
            <li key={`${item.kind} ${item.id}`}>
              <Result item={item} onOpen={onOpen} />
            </li>
          ))}
        </ul>
      )}
      {more && <p className="help">There are more. The page of each kind lists them.</p>}
      {hidden.length > 0 && <p className="help">Not searched, because you lack the scope: {hidden.join(', ')}.</p>}
    </>
  );
}

function Result({ item, onOpen }: { item: Found; onOpen: () => void }) {
  const { kind, id, state, matched, updatedAt } = item;
  const [word, path] = KINDS[kind];
  const name = (
    <>
      {word} <code>{id}</code>
    </>
  );
  const hasPage = PAGES.some((page) => path.startsWith(page.path) && page.path !== '/');
  return (
    <>
      {hasPage ? (
        <Link href={`${path}/${encodeURIComponent(id)}`} onClick={onOpen}>
          {name}
        </Link>
      ) : (
        <span>{name}</span>
      )}
      <State>{state}</State>
      <span className="help">
        {MATCHED[matched]}, {kind === 'import' || kind === 'delivery' ? 'received' : 'changed'}{' '}
        <Moment at={updatedAt} />
      </span>
    </>
  );
}

/** The arrow keys lead from the field through the results and back. */
function moveFocus(event: KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  const places = [...event.currentTarget.querySelectorAll<HTMLElement>('input, a')];
  const next = places[places.indexOf(document.activeElement as HTMLElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
