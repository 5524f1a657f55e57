import type { Schemas } from '../../api/client.js';
import type { Tone } from '../../parts/state.js';
import { number } from '../../parts/values.js';

export type Import = Schemas['ImportResponse'];
export type Row = Schemas['ImportRowView'];
export type Guard = Schemas['GuardResponse'];
export type Outcome = Row['outcome'];

/** It no longer changes, unless it is retried. */
export const isOver = ({ state }: Import): boolean => ['completed', 'cancelled', 'failed'].includes(state);

/** Its files have been read and compared. */
export const isRead = ({ state }: Import): boolean => state !== 'staging' && state !== 'needs-mapping';

/** The planned outcomes of rows, the most important first. */
export const PLANNED = {
  'create-or-link': 'to create or link',
  'provider-change': 'to update',
  delete: 'to delete',
  'attribute-change': 'to change only here (no API)',
  unchanged: 'unchanged',
  'needs-review': 'need review',
  rejected: 'rejected',
} as const;

/** The outcomes of rows, in the same order. */
export const OUTCOMES: Record<Outcome, string> = {
  pending: 'pending',
  created: 'created',
  linked: 'linked',
  updated: 'updated',
  deleted: 'deleted',
  unchanged: 'unchanged',
  skipped: 'skipped',
  needsReview: 'need review',
  failed: 'failed',
  rejected: 'rejected',
};

export const OUTCOME_TONES: Partial<Record<Outcome, Tone>> = {
  pending: 'busy',
  created: 'good',
  linked: 'good',
  updated: 'good',
  needsReview: 'warn',
  failed: 'bad',
  rejected: 'bad',
};

type Unknown = NonNullable<Import['etaUnknown']>;

/** Why the end cannot be estimated. */
export const ETA_UNKNOWN: Record<Unknown, string> = {
  paused: 'The import is paused.',
  'no-pace': 'The pace is not known yet.',
  'rate-limited': 'The platform asked for fewer calls.',
  'no-worker': 'No worker process is running, so nothing is sent. Start a process whose ROLES include worker.',
  'not-configured': 'PLATFORM_CONTRACT has no apiKey.header, so nothing is sent.',
  'platform-unauthorized': 'The platform rejects PLATFORM_API_KEY, so nothing is sent.',
  'platform-address': 'PLATFORM_BASE_URL does not lead to the platform, so nothing is sent.',
  'platform-fault': 'The platform gives no readable answers, so little is sent.',
  'platform-rejects': 'The platform rejects an operation for everyone. See System health.',
};

const NO_FAULTS: readonly unknown[] = ['paused', 'no-pace', 'rate-limited', null];

/** Why nothing is sent until it is fixed. */
export const faultOf = ({ etaUnknown }: Import): string | undefined =>
  NO_FAULTS.includes(etaUnknown) ? undefined : ETA_UNKNOWN[etaUnknown as Unknown];

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

const CHANGES = [
  ['create-or-link', 'creates or links'],
  ['provider-change', 'updates'],
  ['delete', 'deletes'],
] as const;
const REST = [
  ['unchanged', 'is unchanged', 'are unchanged'],
  ['attribute-change', 'changes only here (no API)', 'change only here (no API)'],
  ['needs-review', 'needs review', 'need review'],
  ['rejected', 'row is rejected', 'rows are rejected'],
] as const;

/** True if applying the plan would change anything. */
export const hasChanges = ({ planned }: Import): boolean =>
  [...CHANGES.map(([name]) => name), 'attribute-change'].some((name) => planned[name]);

/** The plan as one sentence. */
export function planSentence({ planned }: Import): string {
  const changes = CHANGES.filter(([name]) => planned[name]).map(([name, verb], at) => {
    const count = planned[name] ?? 0;
    return `${verb} ${at === 0 ? counted(count, 'person', 'people') : number(count)}`;
  });
  const rest = REST.filter(([name]) => planned[name]).map(([name, one, many]) =>
    counted(planned[name] ?? 0, one, many),
  );
  const sentence = [changes.join(', ') || 'changes nothing', rest.join(', ')].filter(Boolean).join('; ');
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`;
}

export const keyOf = ({ row }: Row): string => String(row);

/** The file and line of a row. */
export const placeOf = ({ file, line }: Row): string => (line > 0 ? `${file}, line ${line}` : 'not in the files');

/** A code in words, such as bad email. */
export const wordsOfCode = (code: string): string => code.replaceAll('-', ' ');

/** Why a row has its outcome, if there is a reason. */
export const reasonOf = ({ hint, code }: Row): string => hint ?? (code ? wordsOfCode(code) : '');
