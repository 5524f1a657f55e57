import type { PlannedOutcome } from '../../imports/model/import.js';
import type { Guard, GuardName } from '../../imports/model/import-guards.js';
import type { ImportResponse } from '../../imports/report/import-view.js';
import { counted, duration } from '../output/print.js';

/** Outcomes in the order in which a reader wants them, with their words. */
const OUTCOMES = {
  created: 'created on the platform',
  linked: 'found on the platform and linked',
  updated: 'updated',
  unchanged: 'unchanged, no call needed',
  skipped: 'skipped',
  deleted: 'deleted from the platform',
  needsReview: 'left for your review',
  rejected: 'rejected',
  failed: 'failed',
  pending: 'not done yet',
};

/** What became of people whom a snapshot was to delete, where they were not; they are no rows of the files. */
const DELETES = {
  pending: 'to be deleted, not done yet',
  failed: 'whose deletion failed',
  needsReview: 'whose deletion is left for your review',
  skipped: 'kept, though the files do not name them',
};

const GUARDS: Record<GuardName, string> = {
  deletes: 'people would be deleted',
  providerRemovals: 'clients would lose a provider',
};

const PLANNED: Record<PlannedOutcome, string> = {
  'create-or-link': 'to be created, or linked when the platform knows them',
  'provider-change': 'whose providers change',
  'attribute-change': 'with changes that the platform has no operation for',
  delete: 'to be deleted',
  unchanged: 'unchanged, no call needed',
  'needs-review': 'left for your review',
  rejected: 'rejected',
};

/** What there is to do in a plan. */
const WORK: readonly PlannedOutcome[] = ['create-or-link', 'provider-change', 'attribute-change', 'delete'];

/** How an import that came to rest ends the command: 0 well, 2 when something needs a user's attention, 1 not at all. */
export function exitCodeOf(view: ImportResponse): 0 | 1 | 2 {
  if (view.state === 'failed' || view.state === 'cancelled') return 1;
  const skipped = view.counts.skipped + (view.deletes.skipped ?? 0);
  const waits = view.state === 'paused' || exceeded(view).length > 0;
  return view.needAttention > 0 || skipped > 0 || waits ? 2 : 0;
}

/** The thresholds that hold a plan back. */
function exceeded({ state, guards }: ImportResponse): Guard[] {
  return state === 'planned' ? guards.filter((guard) => guard.exceeded) : [];
}

/** What became of an import, and which commands come next. */
export function importSummary(view: ImportResponse): string {
  const { counts, deletes, planned, ignoredColumns } = view;
  const lines =
    view.state === 'planned'
      ? [...countLines(planned, PLANNED), `  That needs ${needed(view)}.`]
      : [...countLines(counts, OUTCOMES), ...countLines(deletes, DELETES)];
  for (const { name, count, of, threshold } of exceeded(view)) {
    const most = threshold ? `; more than ${threshold.percent}% and ${threshold.people} need your word` : '';
    lines.push(`  Held back by the threshold ${name}: ${count} of ${of} ${GUARDS[name]}${most}.`);
  }
  // A misspelt name costs a column of the whole file: it is named even where every row went well.
  for (const { file, columns } of ignoredColumns) {
    const which = columns.length === 1 ? 'the column' : 'the columns';
    lines.push(`  Nothing was read from ${which} ${columns.join(', ')} of ${file}.`);
  }
  return [headline(view), ...lines, ...advice(view)].join('\n');
}

function headline({ id, state, counts, calls, error, createdAt, finishedAt }: ImportResponse): string {
  if (error) return `Import ${id} ${state}: ${error.message}`;
  const took = finishedAt
    ? ` in ${duration((new Date(finishedAt).getTime() - new Date(createdAt).getTime()) / 1_000)}`
    : '';
  return `Import ${id} ${state}${took}: ${counted(counts.total, 'row')}, ${counted(calls.made, 'call')} to the platform`;
}

function countLines(counts: Record<string, number>, words: Record<string, string>): string[] {
  return Object.entries(words).flatMap(([outcome, meaning]) =>
    counts[outcome] ? `  ${String(counts[outcome]).padStart(6)}  ${meaning}` : [],
  );
}

function needed({ calls, etaSeconds }: ImportResponse): string {
  const { min, max } = calls.remaining;
  const count = min === max ? counted(max, 'call') : `${min} to ${counted(max, 'call')}`;
  return etaSeconds === null || max === 0 ? count : `${count}, about ${duration(etaSeconds)}`;
}

function advice(view: ImportResponse): string[] {
  const { id, state, counts, deletes, planned } = view;
  const hasWork = WORK.some((outcome) => (planned[outcome] ?? 0) > 0);
  const over = exceeded(view).map(({ name }) => name);
  const apply = ['npx notebridge apply', id, ...(over.length > 0 ? ['--override', ...over] : [])].join(' ');
  const rows = `npx notebridge import-rows ${id}`;
  const advices: [boolean, string][] = [
    [state === 'planned' && hasWork, `Nothing was sent. To do it: ${apply}`],
    [state === 'planned' && !hasWork, 'Nothing was sent, and there is nothing to do.'],
    [state === 'paused', `To go on: npx notebridge resume ${id}`],
    [counts.rejected > 0, `Rejected rows, to be corrected and imported again: ${rows} --rejected-csv rejected.csv`],
    [counts.needsReview + (deletes.needsReview ?? 0) > 0, `For review, with the reason: ${rows} --outcome needsReview`],
    [
      counts.failed + (deletes.failed ?? 0) > 0,
      `Failed rows, with the reason: ${rows} --outcome failed\nAgain: npx notebridge retry ${id}`,
    ],
  ];
  return advices.flatMap(([applies, line]) => (applies ? line : []));
}
