import { Link, useSearch } from 'wouter';
import { inSentence, labelOf, labelsOf } from '../../api/words.js';
import { Section } from '../../parts/layout.js';
import { estimate, number } from '../../parts/values.js';
import { callsLeft, counted, faultOf, type Import, isRead, labelOfReason } from './words.js';

/** The progress of an import, and when it will end. */
export function ImportProgress({ view }: { view: Import }) {
  const { state, counts, deletes, calls, etaUnknown } = view;
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
        {counted(calls.made, 'call')} made, {callsLeft(view)} left{duration(view)}.{' '}
        {etaUnknown && !faultOf(view) && `${labelOf('etaUnknown', etaUnknown)}.`}
      </span>
    </div>
  );
}

function duration({ etaSeconds, etaMinSeconds, calls }: Import): string {
  if (etaSeconds === null || calls.remaining.max === 0) return '';
  return `: about ${estimate(etaMinSeconds ?? etaSeconds, etaSeconds)} at the limit of calls`;
}

/** The plan or the results. Each number leads to its rows. */
export function Numbers({ view }: { view: Import }) {
  const { id, state, planned, counts, deletes, reasons } = view;
  if (!isRead(view)) return null;
  const isPlan = state === 'planned';
  const outcomes = labelsOf('rowOutcome').map(([name, label]) => {
    const people = name === 'deleted' ? 0 : (deletes[name] ?? 0);
    return { search: `outcome=${name}`, words: inSentence(label), count: (counts[name] ?? 0) + people };
  });
  const plan = labelsOf('plannedOutcome').map(([name, label]) => {
    const filter = name === 'rejected' ? 'outcome' : 'planned';
    return { search: `${filter}=${name}`, words: inSentence(label), count: planned[name] ?? 0 };
  });
  return (
    <>
      <Section title={isPlan ? 'The plan' : 'Results'}>
        {isPlan && (
          <p>
            Nothing has been sent yet. Applying the plan takes {callsLeft(view)}
            {duration(view)}.
          </p>
        )}
        <Counts id={id} counts={isPlan ? plan : outcomes} />
      </Section>
      {reasons.length > 0 && (
        <Section title="Reasons">
          <Counts
            id={id}
            counts={reasons.map(({ outcome, code, rows }) => ({
              search: `outcome=${outcome}&code=${encodeURIComponent(code)}`,
              words: `${inSentence(labelOf('rowOutcome', outcome))}: ${inSentence(labelOfReason(code))}`,
              count: rows,
            }))}
          />
        </Section>
      )}
    </>
  );
}

/** Numbers of rows, each with a link to them. */
function Counts(props: { id: string; counts: readonly { search: string; words: string; count: number }[] }) {
  const { id, counts } = props;
  const shown = useSearch();
  return (
    <ul className="plain tiles">
      {counts
        .filter(({ count }) => count > 0)
        .map(({ search, words, count }) => (
          <li key={search}>
            <Link href={`/imports/${id}?${search}`} aria-current={shown === search ? 'true' : undefined}>
              <strong>{number(count)}</strong> {words}
            </Link>
          </li>
        ))}
    </ul>
  );
}
