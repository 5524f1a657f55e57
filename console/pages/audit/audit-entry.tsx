import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { api, type Schemas } from '../../api/client.js';
import { Dialog } from '../../parts/action.js';
import { Facts } from '../../parts/layout.js';
import { Read } from '../../parts/read.js';
import { State } from '../../parts/state.js';
import { Copyable, Moment, number } from '../../parts/values.js';
import { KINDS, personAddress } from '../people/person.js';

/** One whole entry, read by its id, so that links to it keep working. */
export function AuditEntry({ id, onClose }: { id: string; onClose: () => void }) {
  return (
    <Dialog title={`Entry ${id}`} close="Close" onClose={onClose}>
      <Read name={['audit', 'entry', id]} call={() => api.GET('/v1/audit', { params: { query: { id } } })}>
        {({ items: [entry] }) =>
          entry ? <Shown entry={entry} /> : <p className="quiet">The audit log has no such entry, or no longer.</p>
        }
      </Read>
    </Dialog>
  );
}

function Shown({ entry }: { entry: Schemas['AuditResponse'] }) {
  const { keyId, action, outcome, requestId, subjects } = entry;
  const people = KINDS.flatMap((kind) => (subjects[kind] ?? []).map((externalId) => ({ kind, externalId })));
  return (
    <>
      <Facts
        facts={{
          When: <Moment at={entry.at} exact />,
          Action: <code>{action}</code>,
          Outcome: <Outcome outcome={outcome} />,
          Who: entry.keyName,
          'Id of the key or person': <code>{keyId}</code>,
          'Signed in with': entry.issuer,
          'On behalf of': entry.onBehalfOf,
          Purpose: entry.purpose,
          'From the address': entry.source,
          Request: requestId && <Copyable text={requestId} name="the id of the request" />,
        }}
      />
      <h3>About</h3>
      <About entry={entry} most={Number.POSITIVE_INFINITY} />
      {people.length === 1 && people[0] && <Link href={personAddress(people[0])}>{`Open the ${people[0].kind}`}</Link>}
    </>
  );
}

type Entry = Schemas['AuditResponse'];

/** Whom and what an entry is about. @param most ids that are named, at most */
export function About({ entry: { subjects, ranges }, most }: { entry: Entry; most: number }): ReactNode {
  const named = Object.entries(subjects).flatMap(([kind, ids]) => ids.map((id) => [kind, id] as const));
  const listed = Object.entries(ranges);
  if (named.length + listed.length === 0) return null;
  return (
    <ul className="plain">
      {named.slice(0, most).map(([kind, id]) => (
        <li key={`${kind} ${id}`}>
          {kind} <code>{id}</code>
        </li>
      ))}
      {named.length > most && <li>{`and ${number(named.length - most)} more`}</li>}
      {listed.map(([kind, { count, first, last }]) => (
        <li key={kind}>
          {`${kind}: ${number(count)} between `}
          <code>{first}</code> and <code>{last}</code>
        </li>
      ))}
    </ul>
  );
}

export function Outcome({ outcome }: { outcome: string }) {
  return <State tone={outcome === 'ok' ? 'good' : outcome === 'begun' ? 'busy' : 'warn'}>{outcome}</State>;
}
