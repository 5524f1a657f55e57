import { Link, useSearch } from 'wouter';
import { Section } from '../../parts/layout.js';
import { duration, number } from '../../parts/values.js';
import { callsLeft, counted, type Import, OUTCOMES, PLANNED, WHY_UNKNOWN } from './words.js';

/** How far an import is, and when it ends. */
export function ImportProgress({ view }: { view: Import }) {
  const { state, counts, deletes, calls } = view;
  if (state === 'staging')
    return (
      <label className="progress">
        Reading the files and planning
        <progress />
      </label>
    );
  if (state !== 'running' && state !== 'paused') return null;
  const toDelete = Object.values(deletes).reduce((sum, people) => sum + people, 0);
  const total = (counts.total ?? 0) + toDelete;
  const done = total - (counts.pending ?? 0) - (deletes.pending ?? 0);
  return (
    <div className="progress">
      <label className="progress">
        {number(done)} of {counted(total, 'row')} done
        <progress max={total} value={done} />
      </label>
      <span>
        {counted(calls.made, 'call')} made, {callsLeft(view)} left{ending(view)}
      </span>
    </div>
  );
}

function ending({ etaSeconds, etaUnknown }: Import): string {
  if (etaUnknown) return `. The end is not known: ${WHY_UNKNOWN[etaUnknown]}.`;
  return etaSeconds === null ? '.' : `, about ${duration(etaSeconds)} to go.`;
}

/** What is planned, or what became of it: each number leads to its rows. */
export function Numbers({ view }: { view: Import }) {
  const { id, state, planned, counts, deletes, calls } = view;
  if (state === 'staging') return null;
  const isPlan = state === 'planned';
  const outcomes = Object.entries(OUTCOMES).map(([name, words]) => {
    const people = name === 'deleted' ? 0 : (deletes[name] ?? 0);
    return ['outcome', name, words, (counts[name] ?? 0) + people] as const;
  });
  const plan = Object.entries(PLANNED).map(([name, words]) => ['planned', name, words, planned[name] ?? 0] as const);
  const shown = (isPlan ? plan : outcomes).filter(([, , , count]) => count > 0);
  return (
    <Section title={isPlan ? 'The plan' : 'What became of the rows'}>
      <ul className="plain tiles">
        {shown.map(([filter, name, words, count]) => (
          <CountLink
            key={name}
            id={id}
            search={name === 'rejected' ? 'outcome=rejected' : `${filter}=${name}`}
            count={count}
          >
            {words}
          </CountLink>
        ))}
      </ul>
      {isPlan && (
        <p>
          Nothing was sent yet. Applying it takes {callsLeft(view)}
          {view.etaSeconds !== null && calls.remaining.max > 0 && `, about ${duration(view.etaSeconds)}`}.
        </p>
      )}
    </Section>
  );
}

function CountLink(props: { id: string; search: string; count: number; children: string }) {
  const { id, search, count, children } = props;
  const isShown = useSearch() === search;
  return (
    <li>
      <Link href={`/imports/${id}?${search}`} aria-current={isShown ? 'true' : undefined}>
        <strong>{number(count)}</strong> {children}
      </Link>
    </li>
  );
}
