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
} as const;

type Outcome = keyof typeof OUTCOMES;

/** What became of people whom a snapshot was to delete, where they were not; they are no rows of the files. */
const DELETES = [
  ['pending', 'to be deleted, not done yet'],
  ['failed', 'whose deletion failed'],
  ['needsReview', 'whose deletion is left for your review'],
  ['skipped', 'kept, though the files do not name them'],
] as const;

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

/** What a plan may hold that somebody can have done. */
const WORK: readonly PlannedOutcome[] = ['create-or-link', 'provider-change', 'attribute-change', 'delete'];

/** How an import that came to rest ends the command: 0 well, 2 with something that needs somebody, 1 not at all. */
export function exitCodeOf(view: ImportResponse): 0 | 1 | 2 {
  if (view.state === 'failed' || view.state === 'cancelled') return 1;
  const skipped = view.counts.skipped + (view.deletes.skipped ?? 0);
  const waits = view.state === 'paused' || exceeded(view).length > 0;
  return view.needAttention > 0 || skipped > 0 || waits ? 2 : 0;
}

/** The thresholds that hold a plan back. */
function exceeded({ state, guards }: ImportResponse): ImportResponse['guards'] {
  return state === 'planned' ? guards.filter((guard) => guard.exceeded) : [];
}

/**
 * What became of an import, and where to look next.
 *
 * @param command how the command line is called, for the lines that say what to type
 */
export function importSummary(view: ImportResponse, command: string): string {
  return [
    headline(view),
    ...(view.state === 'planned' ? planLines(view) : outcomeLines(view)),
    ...exceeded(view).map(guardLine),
    ...view.ignoredColumns.map(ignoredLine),
    ...advice(view, command),
  ].join('\n');
}

function headline(view: ImportResponse): string {
  const rows = counted(view.counts.total, 'row');
  if (view.error) return `Import ${view.id} ${view.state}: ${view.error.message}`;
  const took =
    view.finishedAt === null
      ? ''
      : ` in ${duration((Number(new Date(view.finishedAt)) - Number(new Date(view.createdAt))) / 1_000)}`;
  return `Import ${view.id} ${view.state}${took}: ${rows}, ${counted(view.calls.made, 'call')} to the platform`;
}

function outcomeLines(view: ImportResponse): string[] {
  const outcomes = Object.entries(OUTCOMES).filter(([outcome]) => view.counts[outcome as Outcome] > 0);
  return [
    ...outcomes.map(([outcome, words]) => line(view.counts[outcome as Outcome], words)),
    ...DELETES.flatMap(([outcome, words]) => (view.deletes[outcome] ? [line(view.deletes[outcome], words)] : [])),
  ];
}

function planLines(view: ImportResponse): string[] {
  const { min, max } = view.calls.remaining;
  const planned = Object.entries(PLANNED).filter(([outcome]) => (view.planned[outcome] ?? 0) > 0);
  const calls = min === max ? counted(max, 'call') : `${min} to ${counted(max, 'call')}`;
  const time = view.etaSeconds === null || max === 0 ? '' : `, about ${duration(view.etaSeconds)}`;
  return [
    ...planned.map(([outcome, words]) => line(view.planned[outcome] ?? 0, words)),
    `  That needs ${calls}${time}.`,
  ];
}

/** A misspelt name costs a column of the whole file: it is told even where every row went well. */
function ignoredLine({ file, columns }: ImportResponse['ignoredColumns'][number]): string {
  return `  Nothing was read from ${columns.length === 1 ? 'the column' : 'the columns'} ${columns.join(', ')} of ${file}.`;
}

function line(count: number, words: string): string {
  return `  ${String(count).padStart(6)}  ${words}`;
}

function guardLine({ name, count, of, threshold }: Guard): string {
  const most = threshold ? `; more than ${threshold.percent}% and ${threshold.people} need your word` : '';
  return `  Held back by the threshold ${name}: ${count} of ${of} ${GUARDS[name]}${most}.`;
}

function planAdvice(view: ImportResponse, command: string): string {
  const { id, planned } = view;
  if (!WORK.some((outcome) => (planned[outcome] ?? 0) > 0)) return 'Nothing was sent, and there is nothing to do.';
  const over = exceeded(view).map(({ name }) => name);
  const override = over.length > 0 ? ` --override ${over.join(' ')}` : '';
  return `Nothing was sent. To do it: ${command} apply ${id}${override}`;
}

function advice(view: ImportResponse, command: string): string[] {
  const { counts, deletes, id } = view;
  return [
    ...(view.state === 'planned' ? [planAdvice(view, command)] : []),
    ...(view.state === 'paused' ? [`To go on: ${command} resume ${id}`] : []),
    ...(counts.rejected > 0
      ? [`Rejected rows, to be corrected and imported again: ${command} import-rows ${id} --rejected-csv rejected.csv`]
      : []),
    ...(counts.needsReview + (deletes.needsReview ?? 0) > 0
      ? [`For review, with the reason: ${command} import-rows ${id} --outcome needsReview`]
      : []),
    ...(counts.failed + (deletes.failed ?? 0) > 0
      ? [`Failed rows, with the reason: ${command} import-rows ${id} --outcome failed`, `Again: ${command} retry ${id}`]
      : []),
  ];
}
