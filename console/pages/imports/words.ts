import type { Schemas } from '../../api/client.js';
import type { Tone } from '../../parts/state.js';
import { number } from '../../parts/values.js';

export type Import = Schemas['ImportResponse'];
export type Row = Schemas['ImportRowView'];
export type Guard = Schemas['GuardResponse'];
export type Outcome = Row['outcome'];

/** Nothing of it changes any more. */
export const isOver = ({ state }: Import): boolean => ['completed', 'cancelled', 'failed'].includes(state);

/** What a plan says of rows, in the order in which a reader wants it. */
export const PLANNED = {
  'create-or-link': 'to create, or to link where the platform knows them',
  'provider-change': 'whose providers change',
  'attribute-change': 'with changes that the platform has no operation for',
  delete: 'to delete',
  unchanged: 'unchanged, no call needed',
  'needs-review': 'left for your review',
  rejected: 'rejected',
} as const;

/** What became of rows, in the same order. */
export const OUTCOMES: Record<Outcome, string> = {
  pending: 'not done yet',
  created: 'created on the platform',
  linked: 'found there and linked',
  updated: 'updated',
  deleted: 'deleted from the platform',
  unchanged: 'unchanged, no call needed',
  skipped: 'skipped',
  needsReview: 'left for your review',
  failed: 'failed',
  rejected: 'rejected',
};

export const OUTCOME_TONES: Partial<Record<string, Tone>> = {
  pending: 'busy',
  created: 'good',
  linked: 'good',
  updated: 'good',
  needsReview: 'warn',
  failed: 'bad',
  rejected: 'bad',
};

/** What a guard counts. */
export const GUARDS: Record<Guard['name'], string> = {
  deletes: 'people would be deleted',
  providerRemovals: 'clients would lose a provider',
};

/** Why nothing is sent at present. */
export const WHY_UNKNOWN: Record<NonNullable<Import['etaUnknown']>, string> = {
  paused: 'it is paused',
  'not-configured': 'PLATFORM_CONTRACT has no apiKey.header, so nothing is sent',
  'platform-unauthorized': 'the platform refuses PLATFORM_API_KEY, so nothing is sent',
  'platform-address': 'PLATFORM_BASE_URL does not lead to the platform, so nothing is sent',
  'platform-fault': 'the platform gives no readable answers, so little is sent',
  'platform-rejects': 'the platform rejects an operation for everyone; see System health',
  'rate-limited': 'the platform asked for fewer calls',
};

/** What an import is called: its files, as their sender named them. */
export function nameOf({ files, kind }: Import): string {
  const names = files.map(({ name }) => name);
  if (names.length === 0) return kind === 'fhir' ? 'FHIR' : kind;
  return names.length <= 2 ? names.join(', ') : `${names[0]} and ${number(names.length - 1)} more`;
}

/** So many of something. */
export const counted = (count: number, noun: string): string => `${number(count)} ${noun}${count === 1 ? '' : 's'}`;

/** The calls that are left, as far as it is known. */
export function callsLeft({ calls: { remaining } }: Import): string {
  const { min, max } = remaining;
  return min === max ? counted(max, 'call') : `${number(min)} to ${counted(max, 'call')}`;
}

/** A row by where it stands; people to delete stand in no file. */
export const keyOf = ({ file, line, kind, externalId }: Row): string => `${line} ${file} ${kind} ${externalId}`;

/** Where a row stands. */
export const placeOf = ({ file, line }: Row): string => (line > 0 ? `${file}, line ${line}` : 'missing in the files');

/** Why a row came to what it did, where there is something to say. */
export const reasonOf = ({ field, hint }: Row): string => [field, hint].filter(Boolean).join(': ');
