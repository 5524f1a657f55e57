import type { Guard, GuardName } from '../../imports/model/import-guards.js';
import type { PlannedOutcome } from '../../imports/model/import-types.js';
import type { ImportResponse } from '../../imports/report/import-view.js';
import { counted, duration } from '../output/duration.js';

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
  creates: 'people would be new',
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
  const isPlan = view.state === 'planned';
  return [
    headline(view),
    ...(isPlan ? planLines(view) : [...countLines(view.counts, OUTCOMES), ...countLines(view.deletes, DELETES)]),
    ...exceeded(view).map(guardLine),
    ...view.ignoredColumns.map(ignoredLine),
    ...advice(view),
  ].join('\n');
}

function headline({ id, state, counts, calls, error, createdAt, finishedAt }: ImportResponse): string {
  if (error) return `Import ${id} ${state}: ${error.message}`;
  const seconds = finishedAt && (new Date(finishedAt).getTime() - new Date(createdAt).getTime()) / 1_000;
  const took = seconds === null ? '' : ` in ${duration(seconds)}`;
  return `Import ${id} ${state}${took}: ${counted(counts.total, 'row')}, ${counted(calls.made, 'call')} to the platform`;
}

function countLines(counts: Record<string, number>, words: Record<string, string>): string[] {
  return Object.entries(words)
    .filter(([outcome]) => (counts[outcome] ?? 0) > 0)
    .map(([outcome, meaning]) => `  ${String(counts[outcome]).padStart(6)}  ${meaning}`);
}

function planLines({ calls, planned, etaSeconds }: ImportResponse): string[] {
  const { min, max } = calls.remaining;
  const count = min === max ? counted(max, 'call') : `${min} to ${counted(max, 'call')}`;
  const time = etaSeconds === null || max === 0 ? '' : `, about ${duration(etaSeconds)}`;
  return [...countLines(planned, PLANNED), `  That needs ${count}${time}.`];
}

/** A misspelt name costs a column of the whole file: it is named even where every row went well. */
function ignoredLine({ file, columns }: ImportResponse['ignoredColumns'][number]): string {
  return `  Nothing was read from ${columns.length === 1 ? 'the column' : 'the columns'} ${columns.join(', ')} of ${file}.`;
}

function guardLine({ name, count, of, threshold }: Guard): string {
  const most = threshold ? `; more than ${threshold.percent}% and ${threshold.people} need your word` : '';
  return `  Held back by the threshold ${name}: ${count} of ${of} ${GUARDS[name]}${most}.`;
}

function advice(view: ImportResponse): string[] {
  const { id, state, counts, deletes, planned } = view;
  const lines: string[] = [];
  if (state === 'planned') {
    const hasWork = WORK.some((outcome) => (planned[outcome] ?? 0) > 0);
    const over = exceeded(view).map(({ name }) => name);
    const apply = ['npx notebridge apply', id, ...(over.length > 0 ? ['--override', ...over] : [])].join(' ');
    lines.push(hasWork ? `Nothing was sent. To do it: ${apply}` : 'Nothing was sent, and there is nothing to do.');
  }
  if (state === 'paused') lines.push(`To go on: npx notebridge resume ${id}`);
  const rows = `npx notebridge import-rows ${id}`;
  if (counts.rejected > 0) {
    lines.push(`Rejected rows, to be corrected and imported again: ${rows} --rejected-csv rejected.csv`);
  }
  if (counts.needsReview + (deletes.needsReview ?? 0) > 0) {
    lines.push(`For review, with the reason: ${rows} --outcome needsReview`);
  }
  if (counts.failed + (deletes.failed ?? 0) > 0) {
    lines.push(`Failed rows, with the reason: ${rows} --outcome failed`, `Again: npx notebridge retry ${id}`);
  }
  return lines;
}
