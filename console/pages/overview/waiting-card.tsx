import { Link } from 'wouter';
import type { Schemas } from '../../api/client.js';
import { count, Figures } from './figures.js';

type Waiting = Schemas['WaitingForPersonResponse'];

/** The name of each kind, and the page of the console that shows it, if there is one. */
const KINDS: Record<string, readonly [words: string, page?: string]> = {
  'client-needs-review': ['Clients to review', '/people?state=needs-review'],
  'provider-needs-review': ['Providers to review', '/people?kind=provider&state=needs-review'],
  'client-failed': ['Clients that failed', '/people?state=failed'],
  'provider-failed': ['Providers that failed', '/people?kind=provider&state=failed'],
  'session-unknown': ['Requests for sessions whose outcome is not known', '/sessions?state=Unknown'],
  'compliance-unknown': ['Compliance jobs whose submission got no answer'],
  'compliance-result-unreadable': ['Compliance jobs whose result cannot be read'],
  'delivery-dead': ['Deliveries given up', '/deliveries?state=dead'],
  'delivery-not-understood': ['Deliveries not understood', '/deliveries?state=not-understood'],
  'import-planned': ['Plans of imports to apply', '/imports'],
  'import-dry-run': ['Plans of dry runs that can be applied', '/imports'],
  'import-paused': ['Imports on pause', '/imports'],
};

/** What does not go on by itself. */
export function WaitingCard({ waiting }: { waiting: readonly Waiting[] | null }) {
  return (
    <Figures title="Waits for a person" of={waiting}>
      {(entries) =>
        entries.length === 0 ? (
          <p className="quiet">Nothing: all that is under way goes on by itself.</p>
        ) : (
          <ul className="plain tiles due">
            {entries.map((entry) => (
              <li key={entry.kind}>
                <Tile entry={entry} />
              </li>
            ))}
          </ul>
        )
      }
    </Figures>
  );
}

function Tile({ entry }: { entry: Waiting }) {
  const [words, page] = KINDS[entry.kind] ?? [entry.kind.replaceAll('-', ' '), undefined];
  const text = (
    <>
      <strong>{count(entry.count)}</strong> {words}
    </>
  );
  // What has no page of its own yet is found by its list.
  return page === undefined ? <span title={entry.list}>{text}</span> : <Link href={page}>{text}</Link>;
}
