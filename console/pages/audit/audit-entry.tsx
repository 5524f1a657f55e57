import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { api, type Schemas } from '../../api/client.js';
import { Dialog } from '../../parts/action.js';
import { Facts } from '../../parts/layout.js';
import { Read } from '../../parts/read.js';
import { State } from '../../parts/state.js';
import { Copyable, IdLink, Moment, number } from '../../parts/values.js';

/** One whole entry, read by its id, so that links to it keep working. */
export function AuditEntry({ id, onClose }: { id: string; onClose: () => void }) {
  return (
    <Dialog title={`Entry ${id}`} close="Close" onClose={onClose}>
      <Read name={['audit', 'entry', id]} call={() => api.GET('/v1/audit', { params: { query: { id } } })}>
        {({ items: [entry] }) =>
          entry ? (
            <Shown entry={entry} />
          ) : (
            <p className="quiet">This entry does not exist, or its retention period has ended.</p>
          )
        }
      </Read>
    </Dialog>
  );
}

function Shown({ entry }: { entry: Schemas['AuditResponse'] }) {
  const { keyId, keyName, action, summary, outcome, requestId } = entry;
  return (
    <>
      <p>
        <strong>{keyName}</strong> {summary}.
      </p>
      <Facts
        facts={{
          When: <Moment at={entry.at} exact />,
          Operation: <code>{action}</code>,
          Outcome: <Outcome outcome={outcome} />,
          'Id of the caller': <code>{keyId}</code>,
          'Signed in with': entry.issuer,
          'On behalf of': entry.onBehalfOf,
          Purpose: entry.purpose,
          'IP address': entry.source,
          Request: requestId && <Copyable text={requestId} name="the id of the request" />,
        }}
      />
      <h3>About</h3>
      <About entry={entry} />
    </>
  );
}

type Entry = Schemas['AuditResponse'];

/** The paths under which the console shows subjects, by kind. */
const PAGES: Record<string, string> = {
  ...{ client: '/people/client/', provider: '/people/provider/', session: '/sessions/', import: '/imports/' },
  ...{ delivery: '/deliveries/', 'compliance-job': '/compliance/', 'platform-session': '/sessions/' },
};

function SubjectLink({ kind, id, isWhole }: { kind: string; id: string; isWhole: boolean }) {
  const page = PAGES[kind];
  if (page === undefined) return <code>{id}</code>;
  const href = page + encodeURIComponent(id);
  return isWhole ? <Link href={href}>{id}</Link> : <IdLink href={href} id={id} />;
}

/** The subjects of an entry. @param most maximum number of ids to show, each shortened; without it, all are shown whole */
export function About({ entry: { subjects, ranges }, most }: { entry: Entry; most?: number }): ReactNode {
  const named = Object.entries(subjects).flatMap(([kind, ids]) => ids.map((id) => [kind, id] as const));
  const listed = Object.entries(ranges);
  if (named.length + listed.length === 0) return null;
  return (
    <ul className="plain about">
      {named.slice(0, most).map(([kind, id]) => (
        <li key={`${kind} ${id}`}>
          {kind} <SubjectLink kind={kind} id={id} isWhole={most === undefined} />
        </li>
      ))}
      {most !== undefined && named.length > most && <li>{`and ${number(named.length - most)} more`}</li>}
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
