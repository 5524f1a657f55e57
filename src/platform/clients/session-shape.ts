import { SESSION_STATES, type Session } from '../contract/wire-types.js';
import { anyNumber, anyText, fields, filledText, listOf, mapOf, oneOf } from './answer-shape.js';

const span = { start: anyNumber, end: anyNumber };
const utterance = fields({
  ...span,
  text: anyText,
  speaker: anyText,
  words: listOf(fields({ ...span, text: anyText })),
});
const note = fields(
  { category: anyText, text: anyText },
  { categoryName: anyText, formatting: fields({}, { nestingLevel: anyNumber }) },
);
const document = fields({ sessionDocumentId: filledText, noteTemplateId: filledText, notes: listOf(note) });

const measure = (...names: string[]) => mapOf(fields({}, Object.fromEntries(names.map((name) => [name, anyNumber]))));

const REQUIRED = {
  sessionId: filledText,
  noteTemplateIds: listOf(anyText),
  providerUserId: filledText,
  clientUserIds: listOf(anyText),
  state: oneOf(SESSION_STATES),
};

/** Each may be absent or null. */
const OPTIONAL = {
  partnerAppointmentId: anyText,
  date: anyText,
  sessionCreatedAt: anyText,
  error: fields({ code: anyText, message: anyText }),
  sessionDurationMs: anyNumber,
  recordingDurationMs: anyNumber,
  recordingUrl: anyText,
  transcript: fields({}, { utterances: listOf(utterance), speakerMapping: mapOf(anyText) }),
  topics: listOf(fields({ ...span, headline: anyText, gist: anyText })),
  namedEntities: listOf(fields({ entityType: anyText, name: anyText }, { summary: anyText })),
  notes: listOf(document),
  analyticsSummary: fields(
    {},
    {
      talkingRatio: measure('ratio', 'ratioLongTerm', 'duration', 'durationLongTerm'),
      speechCadence: measure('cadence', 'cadenceLongTerm'),
      responseTime: measure('time', 'timeLongTerm'),
      sentiment: measure('positive', 'positiveLongTerm', 'negative', 'negativeLongTerm'),
      timePerspective: measure('future', 'futureLongTerm', 'past', 'pastLongTerm'),
    },
  ),
};

const required = fields(REQUIRED);

/** The optional fields of a Session, by which what was left out is counted. */
export type SessionPart = keyof typeof OPTIONAL;

/** A Session of the platform as far as it could be read. */
export interface SessionAnswer extends Session {
  /** True when some of its documents could not be read: `notes` is not all that the platform has. */
  notesIncomplete?: boolean;
}

/** What became of an answer that should hold a Session. */
export type SessionReading =
  | { session: SessionAnswer; leftOut: { part: SessionPart; at: string }[] }
  /** The JSON Pointer of the required field that does not fit. */
  | { fault: string };

/**
 * Reads a Session as the spec lists its fields (Resources, Session); fields that the spec does not name are not looked
 * at. An optional part that does not fit counts as absent, and so does each document of its notes by itself: the rest
 * of the Session is worth having.
 */
export function readSession(value: unknown): SessionReading {
  const fault = required(value);
  if (fault !== undefined) return { fault };
  const session = { ...(value as SessionAnswer) };
  const leftOut: { part: SessionPart; at: string }[] = [];
  for (const part of Object.keys(OPTIONAL) as SessionPart[]) {
    const given: unknown = session[part];
    const unfit = given === undefined || given === null ? undefined : OPTIONAL[part](given);
    if (unfit === undefined) continue;
    leftOut.push({ part, at: `/${part}${unfit}` });
    if (part === 'notes' && Array.isArray(given)) {
      session.notes = given.filter((item) => document(item) === undefined);
      session.notesIncomplete = true;
    } else delete session[part];
  }
  return { session, leftOut };
}
