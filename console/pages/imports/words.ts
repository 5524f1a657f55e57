import type { Schemas } from '../../api/client.js';
import { inSentence, labelOf, labelsOf, wordOf } from '../../api/words.js';
import type { Tone } from '../../parts/state.js';
import { number } from '../../parts/values.js';

export type Import = Schemas['ImportResponse'];
export type Row = Schemas['ImportRowView'];
export type Guard = Schemas['GuardResponse'];

/** It no longer changes, unless it is retried. */
export const isOver = ({ state }: Import): boolean => ['completed', 'cancelled', 'failed'].includes(state);

/** It changes only after a decision. */
export const isWaiting = ({ state }: Import): boolean => ['needs-mapping', 'planned', 'paused'].includes(state);

/** Its plan is being carried out. */
export const isLive = ({ state, finishedAt }: Import): boolean =>
  finishedAt === null && ['running', 'paused', 'cancelled'].includes(state);

/** Its files have been read and compared. */
export const isRead = ({ state }: Import): boolean => state !== 'staging' && state !== 'needs-mapping';

export const OUTCOME_TONES: Partial<Record<Row['outcome'], Tone>> = {
  pending: 'busy',
  created: 'good',
  linked: 'good',
  updated: 'good',
  needsReview: 'warn',
  failed: 'bad',
  rejected: 'bad',
};

/** Why nothing is sent until it is fixed. */
export function faultOf({ etaUnknown }: Import): string | undefined {
  const word = etaUnknown && wordOf('etaUnknown', etaUnknown);
  return word?.hint && `${word.label}. ${word.hint}`;
}

/** The names of its files. */
export function nameOf({ files, kind }: Import): string {
  const [first, second, ...more] = files.map(({ name }) => name);
  if (!first) return kind ?? 'Import';
  if (more.length > 0) return `${first} and ${number(files.length - 1)} more`;
  return second ? `${first}, ${second}` : first;
}

/** A number of something. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${number(count)} ${count === 1 ? noun : plural}`;

/** The calls that remain, as far as they are known. */
export function callsLeft({ calls: { remaining } }: Import): string {
  const { min, max } = remaining;
  return min === max ? counted(max, 'call') : `${number(min)} to ${counted(max, 'call')}`;
}

const CHANGES = ['create-or-link', 'provider-change', 'delete', 'attribute-change'];

/** True if applying the plan would change anything. */
export const hasChanges = ({ planned }: Import): boolean => CHANGES.some((name) => planned[name]);

/** The plan as one sentence. */
export const planSentence = ({ planned }: Import): string =>
  `${labelsOf('plannedOutcome')
    .filter(([name]) => planned[name])
    .map(([name, label]) => `${number(planned[name] ?? 0)} ${inSentence(label)}`)
    .join(', ')}.`;

const DONE: Row['outcome'][] = ['created', 'linked', 'updated', 'deleted'];

/** The people that the import has changed, as one sentence. */
export function doneSentence({ counts }: Pick<Import, 'counts'>): string {
  const done = DONE.filter((outcome) => counts[outcome]);
  if (done.length === 0) return 'nobody yet.';
  return `${done.map((outcome) => `${number(counts[outcome] ?? 0)} ${inSentence(labelOf('rowOutcome', outcome))}`).join(', ')}.`;
}

export const keyOf = ({ row }: Row): string => String(row);

/** The line of a row, and its file if the import has several. */
export function placeOf({ file, line }: Row, { files }: Pick<Import, 'files'>): string {
  if (line === 0) return 'not in the files';
  return files.length === 1 ? String(line) : `${file}, line\u00a0${line}`;
}

/** A code of a row or of its person. */
export const labelOfReason = (code: string): string => wordOf('rowCode', code)?.label ?? labelOf('personCode', code);

/** Why a row has its outcome, if there is a reason. */
export const reasonOf = ({ hint, code }: Row): string => hint ?? (code ? labelOfReason(code) : '');
