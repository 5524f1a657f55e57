import type { ImportResponse } from '../../imports/api/import-view.js';
import type { PlannedOutcome } from '../../imports/model/import.js';
import type { Guard } from '../../imports/model/import-guards.js';
import { inSentence, labelOf, labelOfReason, WORDS } from '../../words/words.js';
import { counted, duration, durationRange } from '../output/print.js';
import { applicable, fileLines, mapCommand, onOneLine } from './mapping-summary.js';

/** The outcomes of a plan that need calls. */
const WORK: readonly PlannedOutcome[] = ['create-or-link', 'provider-change', 'attribute-change', 'delete'];

const { label, hint } = WORDS.etaUnknown['no-worker'];
export const NO_WORKER = `Fault: ${inSentence(label)}. ${hint}`;

/** The exit code for a settled import: 0 on success, 2 if something needs attention, 1 if it failed or was cancelled. */
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
  const shown = inSentence(labelOf('importState', state));
  if (error) return `Import ${id} ${shown}: ${error.message}`;
  if (state === 'needs-mapping') return `Import ${id} ${shown}`;
  const took = finishedAt
    ? ` in ${duration((new Date(finishedAt).getTime() - new Date(createdAt).getTime()) / 1_000)}`
    : '';
  return `Import ${id} ${shown}${took}: ${counted(counts.total, 'row')}, ${counted(calls.made, 'call')} to the platform`;
}

function resultLines(view: ImportResponse): string[] {
  const { state, counts, deletes, planned, reasons, corrected, correctionOf, repeatedIds, lostProviders } = view;
  const results =
    state === 'planned'
      ? [...countLines(planned, 'plannedOutcome'), `  That needs ${needed(view)}.`]
      : [...countLines(counts, 'rowOutcome'), ...countLines(deletes, 'rowOutcome', ' (deletion)')];
  const byReason = reasons.map(({ outcome, code, rows }) => {
    const reason = `${inSentence(labelOfReason(code))} (${code})`;
    return countLine(rows, `${inSentence(labelOf('rowOutcome', outcome))}: ${reason}`);
  });
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

/** Outcomes in the order of their vocabulary. */
function countLines(counts: Record<string, number>, name: 'plannedOutcome' | 'rowOutcome', suffix = ''): string[] {
  return Object.entries(WORDS[name]).flatMap(([outcome, word]) =>
    counts[outcome] ? countLine(counts[outcome], inSentence(word.label) + suffix) : [],
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
  return `  Needs confirmation (${name}): ${of > count ? `${count} of ${of}` : count} ${inSentence(labelOf('importGuard', name))}${bound}.${fix}`;
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
