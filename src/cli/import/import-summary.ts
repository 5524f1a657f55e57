import type { EtaUnknown, ImportResponse } from '../../imports/api/import-view.js';
import type { PlannedOutcome } from '../../imports/model/import.js';
import type { Guard, GuardName } from '../../imports/model/import-guards.js';
import { counted, duration, durationRange } from '../output/print.js';
import { applicable, fileLines, mapCommand, onOneLine } from './mapping-summary.js';

/** Outcomes in the order of interest to a reader, in words. */
const OUTCOMES = {
  created: 'created on the platform',
  linked: 'found on the platform and linked',
  updated: 'updated',
  unchanged: 'unchanged, no call needed',
  skipped: 'skipped',
  deleted: 'deleted from the platform',
  needsReview: 'need review',
  rejected: 'rejected',
  failed: 'failed',
  pending: 'pending',
};

/** Outcomes of people that a snapshot did not delete; the files contain no rows for them. */
const DELETES = {
  pending: 'to delete, pending',
  failed: 'whose deletion failed',
  needsReview: 'whose deletion needs review',
  skipped: 'not deleted (cancelled)',
};

const PLANNED: Record<PlannedOutcome, string> = {
  'create-or-link': 'to create or link',
  'provider-change': 'whose providers change',
  'attribute-change': 'with changes that the platform has no operation for',
  delete: 'to delete',
  unchanged: 'unchanged, no call needed',
  'needs-review': 'need review',
  rejected: 'rejected',
};

/** The outcomes of a plan that need calls. */
const WORK: readonly PlannedOutcome[] = ['create-or-link', 'provider-change', 'attribute-change', 'delete'];

const GUARDS: Record<GuardName, (guard: Pick<Guard, 'count' | 'of'>) => string> = {
  deletes: ({ count, of }) => `${count} of ${of} people would be deleted`,
  providerRemovals: ({ count, of }) => `${count} of ${of} clients would lose a provider`,
  idColumn: ({ count }) => `${counted(count, 'person is', 'people are')} known by the ids of another column`,
  looksDoubled: ({ count, of }) => `${count} of ${of} people to create exist under another id`,
};

/** Why the end cannot be estimated. */
export const WHY_UNKNOWN: Record<EtaUnknown, string> = {
  paused: 'it is paused',
  'not-configured': 'PLATFORM_CONTRACT has no apiKey.header, so nothing is sent',
  'platform-unauthorized': 'the platform rejects the API key, so nothing is sent',
  'platform-address': 'the URL is not that of the platform, so nothing is sent',
  'platform-rejects': 'the platform rejects an operation for everyone (npx notebridge status)',
  'rate-limited': 'the platform asked for fewer calls',
  'platform-fault': 'the platform gives no readable answers, so little is sent',
  'no-worker': 'no worker process is running',
  'no-pace': 'too few calls so far',
};

export const NO_WORKER =
  'Fault: no worker process is running, so nothing is sent. Start a process whose ROLES contain worker.';

/** The exit code for an import at rest: 0 on success, 2 if something needs attention, 1 if it failed or was cancelled. */
export function exitCodeOf(view: ImportResponse): 0 | 1 | 2 {
  if (view.state === 'failed' || view.state === 'cancelled') return 1;
  const skipped = view.counts.skipped + (view.deletes.skipped ?? 0);
  const waits = ['paused', 'needs-mapping'].includes(view.state) || exceeded(view).length > 0 || lacksWorker(view);
  return view.needAttention > 0 || skipped > 0 || waits ? 2 : 0;
}

/** The guards that stop a plan. */
function exceeded({ state, guards }: ImportResponse): Guard[] {
  return state === 'planned' ? guards.filter((guard) => guard.exceeded) : [];
}

/** True if no process is there to continue an import. */
export function lacksWorker({ state, etaUnknown }: ImportResponse): boolean {
  return state !== 'completed' && etaUnknown === 'no-worker';
}

/** The results of an import, what was read from its files, and the next commands. */
export function importSummary(view: ImportResponse): string {
  return [
    headline(view),
    ...(view.state === 'needs-mapping' ? [] : resultLines(view)),
    ...view.files.flatMap(fileLines),
    ...exceeded(view).map(guardLine),
    ...(lacksWorker(view) ? [NO_WORKER] : []),
    ...advice(view),
  ].join('\n');
}

function headline({ id, state, counts, calls, error, createdAt, finishedAt }: ImportResponse): string {
  if (error) return `Import ${id} ${state}: ${error.message}`;
  if (state === 'needs-mapping') return `Import ${id} needs-mapping: the columns are not clear`;
  const took = finishedAt
    ? ` in ${duration((new Date(finishedAt).getTime() - new Date(createdAt).getTime()) / 1_000)}`
    : '';
  return `Import ${id} ${state}${took}: ${counted(counts.total, 'row')}, ${counted(calls.made, 'call')} to the platform`;
}

function resultLines(view: ImportResponse): string[] {
  const { state, counts, deletes, planned, reasons, corrected, correctionOf, repeatedIds, lostProviders } = view;
  const results =
    state === 'planned'
      ? [...countLines(planned, PLANNED), `  That needs ${needed(view)}.`]
      : [...countLines(counts, OUTCOMES), ...countLines(deletes, DELETES)];
  const byReason = reasons.map(({ outcome, code, rows }) => countLine(rows, `${OUTCOMES[outcome]}: ${code}`));
  const unclear = counted(view.unclearRows, 'rejected row names', 'rejected rows name');
  const notes: [unknown, string][] = [
    [reasons.length > 0, ['  By reason:', ...byReason].join('\n')],
    [correctionOf, `  It corrects rejected rows of import ${correctionOf}.`],
    [corrected, `  ${counted(corrected, 'row was', 'rows were')} corrected.`],
    [repeatedIds, `  ${counted(repeatedIds, 'id occurs', 'ids occur')} in several rows.`],
    [lostProviders, `  ${counted(lostProviders, 'reference')} to providers matched no provider.`],
    [view.unclearRows, `  ${unclear} no person, so no one is deleted. Correct the files, then import them again.`],
  ];
  return [...results, ...applicable(notes)];
}

function countLines(counts: Record<string, number>, words: Record<string, string>): string[] {
  return Object.entries(words).flatMap(([outcome, meaning]) =>
    counts[outcome] ? countLine(counts[outcome], meaning) : [],
  );
}

const countLine = (count: number, meaning: string): string => `  ${String(count).padStart(6)}  ${meaning}`;

function needed({ calls, etaSeconds, etaMinSeconds }: ImportResponse): string {
  const { min, max } = calls.remaining;
  const count = min === max ? counted(max, 'call') : `${min} to ${counted(max, 'call')}`;
  return etaSeconds === null || max === 0 ? count : `${count}, about ${durationRange(etaMinSeconds, etaSeconds)}`;
}

function guardLine({ name, count, of, threshold }: Guard): string {
  const isOver = threshold && count > threshold.people && count * 100 > of * threshold.percent;
  // Deletions that the files request, and those of accounts that are linked only by email, need it in any number.
  const bound = isOver ? `; more than ${threshold.percent}% and ${threshold.people} need confirmation` : '';
  const fix =
    name === 'idColumn' || name === 'looksDoubled'
      ? ' If the id column is wrong, cancel the import, then import again with --column externalId=NAME.'
      : '';
  return `  Needs confirmation (${name}): ${GUARDS[name]({ count, of })}${bound}.${fix}`;
}

function advice(view: ImportResponse): string[] {
  const { id, state, counts, deletes, planned, reasons, offeredColumns } = view;
  const hasWork = WORK.some((outcome) => (planned[outcome] ?? 0) > 0);
  const over = exceeded(view).map(({ name }) => name);
  const apply = ['npx notebridge apply', id, ...(over.length > 0 ? ['--override', ...over] : [])].join(' ');
  const rows = `npx notebridge import-rows ${id}`;
  const last = Object.entries(offeredColumns ?? {}).map(([field, name]) => `${field}=${onOneLine(name)}`);
  return applicable([
    [state === 'needs-mapping' && last.length > 0, `Columns of the last import: ${last.join(', ')}`],
    [state === 'needs-mapping', `To choose the columns: ${mapCommand(view)}`],
    [state === 'planned' && hasWork, `Nothing was sent. To apply the plan: ${apply}`],
    [state === 'planned' && !hasWork, 'Nothing was sent, and there is nothing to do.'],
    [state === 'paused', `To continue: npx notebridge resume ${id}`],
    [counts.rejected > 0, `Rejected rows, to be corrected and imported again: ${rows} --rejected-csv rejected.csv`],
    [counts.needsReview + (deletes.needsReview ?? 0) > 0, `For review, with the reason: ${rows} --outcome needsReview`],
    [state === 'planned' && planned['needs-review'], `For review: ${rows} --planned needs-review`],
    [
      counts.failed + (deletes.failed ?? 0) > 0,
      `Failed rows, with the reason: ${rows} --outcome failed\nAgain: npx notebridge retry ${id}`,
    ],
    [reasons.length > 1, `Rows with one reason: ${rows} --code ${reasons[0]?.code}`],
  ]);
}
