import * as v from 'valibot';
import { mapIds, platformKey, SESSION_STATES } from './wire-types.js';

const text = v.string();
const filledText = v.pipe(text, v.regex(/\S/));
const number = v.pipe(v.number(), v.finite());
const span = { start: number, end: number };

/** Valibot's objects include arrays. */
const isNoArray = (value: unknown) => !Array.isArray(value);

/** An object with at least these fields. */
const fields = <Entries extends v.ObjectEntries>(entries: Entries) =>
  v.pipe(v.custom<object>(isNoArray), v.object(entries));

/** An object with any keys. Valibot's record skips some, such as `constructor`. */
const mapOf = <Value extends v.GenericSchema>(value: Value) =>
  v.custom<Record<string, v.InferOutput<Value>>>(
    (map) =>
      typeof map === 'object' &&
      map !== null &&
      isNoArray(map) &&
      Object.values(map).every((item) => v.is(value, item)),
  );

/** Numbers by user id. */
function measure<Name extends string>(...names: Name[]) {
  const entries = Object.fromEntries(names.map((name) => [name, v.nullish(number)]));
  return v.nullish(mapOf(fields(entries as Record<Name, v.NullishSchema<typeof number, undefined>>)));
}

const note = fields({
  category: text,
  categoryName: v.nullish(text),
  text,
  /** Above 0 for a bulleted list item within its category. */
  formatting: v.nullish(fields({ nestingLevel: v.nullish(number) })),
});

/** The document of one template. */
const sessionDocument = fields({
  sessionDocumentId: filledText,
  noteTemplateId: filledText,
  notes: v.array(note),
});

/** The required fields. */
const sessionCore = fields({
  sessionId: filledText,
  noteTemplateIds: v.array(text),
  providerUserId: filledText,
  clientUserIds: v.array(text),
  state: v.picklist(SESSION_STATES),
});

/** The optional fields. */
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
      /** Times are in milliseconds from the start of the recording. */
      utterances: v.nullish(
        v.array(fields({ ...span, text, speaker: text, words: v.array(fields({ ...span, text })) })),
      ),
      /** User ids by speaker label; a user may have several labels. */
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

/** The readable part of a Session. */
export interface SessionAnswer extends Session {
  /** True if some documents are unreadable, so that the platform has more notes than `notes`. */
  notesIncomplete?: boolean;
}

/**
 * Reads a Session (spec, Resources), with ids as their `platformKey`. Fields that the spec does not name are kept. An
 * invalid optional field counts as absent, and an invalid document of `notes` does not affect the others. Each field is
 * read up to its first fault, so that an answer full of faults costs no more.
 *
 * @returns the Session and its invalid optional fields, or the JSON Pointer of the first invalid required field
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
