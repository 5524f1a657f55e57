import * as v from 'valibot';
import { mapIds, platformKey, SESSION_STATES } from './wire-types.js';

const text = v.string();
const filledText = v.pipe(text, v.regex(/\S/));
const number = v.pipe(v.number(), v.finite());
const span = { start: number, end: number };

/** Objects of Valibot may be arrays; those of JSON may not. */
const isNoArray = (value: unknown) => !Array.isArray(value);

/** An object with these fields at least. */
const fields = <Entries extends v.ObjectEntries>(entries: Entries) =>
  v.pipe(v.custom<object>(isNoArray), v.object(entries));

/** An object with any keys: Valibot's own record leaves some unread, such as `constructor`. */
const mapOf = <Value extends v.GenericSchema>(value: Value) =>
  v.custom<Record<string, v.InferOutput<Value>>>(
    (map) =>
      typeof map === 'object' &&
      map !== null &&
      isNoArray(map) &&
      Object.values(map).every((item) => v.is(value, item)),
  );

/** Numbers keyed by user UUID. */
function measure<Name extends string>(...names: Name[]) {
  const entries = Object.fromEntries(names.map((name) => [name, v.nullish(number)]));
  return v.nullish(mapOf(fields(entries as Record<Name, v.NullishSchema<typeof number, undefined>>)));
}

const note = fields({
  category: text,
  categoryName: v.nullish(text),
  text,
  /** Above 0: a bulleted list item within its category. */
  formatting: v.nullish(fields({ nestingLevel: v.nullish(number) })),
});

/** One document a template. */
const sessionDocument = fields({
  sessionDocumentId: filledText,
  noteTemplateId: filledText,
  notes: v.array(note),
});

/** What every Session has. */
const sessionCore = fields({
  sessionId: filledText,
  noteTemplateIds: v.array(text),
  providerUserId: filledText,
  clientUserIds: v.array(text),
  state: v.picklist(SESSION_STATES),
});

/** What a Session may have besides. */
const SESSION_PARTS = {
  partnerAppointmentId: v.nullish(text),
  date: v.nullish(text),
  sessionCreatedAt: v.nullish(text),
  error: v.nullish(fields({ code: text, message: text })),
  sessionDurationMs: v.nullish(number),
  recordingDurationMs: v.nullish(number),
  /** Valid for a limited time. */
  recordingUrl: v.nullish(text),
  transcript: v.nullish(
    fields({
      /** Times in milliseconds from the start of the recording. */
      utterances: v.nullish(
        v.array(fields({ ...span, text, speaker: text, words: v.array(fields({ ...span, text })) })),
      ),
      /** Speaker label to user UUID; one user may have several labels. */
      speakerMapping: v.nullish(mapOf(text)),
    }),
  ),
  topics: v.nullish(v.array(fields({ ...span, headline: text, gist: text }))),
  namedEntities: v.nullish(v.array(fields({ entityType: text, name: text, summary: v.nullish(text) }))),
  notes: v.nullish(v.array(sessionDocument)),
  analyticsSummary: v.nullish(
    fields({
      talkingRatio: measure('ratio', 'ratioLongTerm', 'duration', 'durationLongTerm'),
      speechCadence: measure('cadence', 'cadenceLongTerm'),
      responseTime: measure('time', 'timeLongTerm'),
      sentiment: measure('positive', 'positiveLongTerm', 'negative', 'negativeLongTerm'),
      timePerspective: measure('future', 'futureLongTerm', 'past', 'pastLongTerm'),
    }),
  ),
};

export type Session = v.InferOutput<typeof sessionCore> &
  v.InferOutput<v.ObjectSchema<typeof SESSION_PARTS, undefined>>;
export type Transcript = NonNullable<Session['transcript']>;
export type SessionDocument = v.InferOutput<typeof sessionDocument>;
export type Note = v.InferOutput<typeof note>;

type SessionPart = keyof typeof SESSION_PARTS;

/** A Session of the platform as far as it could be read. */
export interface SessionAnswer extends Session {
  /** True when some of its documents could not be read: `notes` is not all that the platform has. */
  notesIncomplete?: boolean;
}

/**
 * Reads a Session as the spec lists its fields (Resources, Session); fields that the spec does not name are kept as they
 * are, and ids become their `platformKey`. An optional part that does not fit counts as absent, and so does each document of its notes by itself: the rest
 * of the Session is worth having. A reading ends at the first fault, so that an answer full of them costs no more.
 *
 * @returns the Session and its parts that were left out, or the JSON Pointer of the required field that does not fit
 */
export function readSession(value: unknown): { session: SessionAnswer; leftOut: SessionPart[] } | { fault: string } {
  const core = v.safeParse(sessionCore, value, { abortEarly: true });
  if (!core.success) return { fault: (core.issues[0].path ?? []).map(({ key }) => `/${key}`).join('') };
  const session = { ...(value as SessionAnswer) };
  const leftOut = (Object.keys(SESSION_PARTS) as SessionPart[]).filter(
    (part) => !v.is(SESSION_PARTS[part], session[part]),
  );
  for (const part of leftOut) {
    if (part !== 'notes' || !Array.isArray(session.notes)) delete session[part];
    else {
      session.notes = session.notes.filter((document) => v.is(sessionDocument, document));
      session.notesIncomplete = true;
    }
  }
  return { session: mapIds(session, platformKey), leftOut };
}
