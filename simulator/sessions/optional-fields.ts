import type { Session } from '../../src/platform/contract/session-answer.js';

/** Optional fields of a Session (spec). */
export const OPTIONAL_FIELDS = [
  'partnerAppointmentId',
  'date',
  'sessionCreatedAt',
  'error',
  'sessionDurationMs',
  'recordingDurationMs',
  'recordingUrl',
  'transcript',
  'topics',
  'namedEntities',
  'notes',
  'analyticsSummary',
] as const satisfies (keyof Session)[];
export type OptionalField = (typeof OPTIONAL_FIELDS)[number];

/** A Session without some of its optional fields. */
export function without(session: Session, left: readonly OptionalField[]): Session {
  const kept = { ...session };
  for (const field of left) delete kept[field];
  return kept;
}
