import { Link } from 'wouter';
import type { Schemas } from '../../api/client.js';
import { Figures } from './figures.js';

type Decision = Schemas['DecisionResponse'];

/** The pages that show them. The others are listed by the API or the command line only. */
const PAGES: Record<string, string> = {
  'client-needs-review': '/review',
  'provider-needs-review': '/review?kind=provider',
  'client-failed': '/review?state=failed',
  'provider-failed': '/review?kind=provider&state=failed',
  'session-unknown': '/sessions?state=Unknown',
  'session-unreadable': '/sessions',
  'compliance-unknown': '/compliance?review=submission-unknown',
  'compliance-result-unreadable': '/compliance?review=result-unreadable',
  'delivery-dead': '/deliveries?state=dead',
  'delivery-not-understood': '/deliveries?state=not-understood',
  'import-needs-mapping': '/imports',
  'import-planned': '/imports',
  'import-dry-run': '/imports',
  'import-paused': '/imports',
};

/** Shows the work that continues only after a decision, in the words of the service. */
export function WaitingCard({ decisions }: { decisions: readonly Decision[] | null }) {
  return (
    <Figures title="Needs attention" of={decisions}>
      {(entries) =>
        entries.length === 0 ? (
          <p className="quiet">Nothing: all work continues automatically.</p>
        ) : (
          <ul className="plain decisions">
            {entries.map(({ kind, cause, action }) => (
              <li key={kind}>
                {PAGES[kind] === undefined ? cause : <Link href={PAGES[kind]}>{cause}</Link>}
                <div className="help">{action}</div>
              </li>
            ))}
          </ul>
        )
      }
    </Figures>
  );
}
