import * as v from 'valibot';
import { isJsonObject } from '../../text/json-object.js';
import { isPlatformId, SESSION_STATES, type SessionState } from './wire-types.js';

/** An id of the platform that a database can store. */
const id = v.custom<string>((value) => isPlatformId(value) && value.trim() !== '');

/** A text that a database can store and index. */
const storableText = v.custom<string>((value) => value === '' || isPlatformId(value));

/** A field that an answer may lack, and that is left out if it is unreadable. */
function optional<Schema extends v.GenericSchema>(schema: Schema) {
  return v.fallback(v.nullish(schema), undefined);
}

/** A list without its unreadable items. */
function listOf<Item extends v.GenericSchema>(item: Item) {
  return v.pipe(
    v.array(v.fallback(v.nullable(item), null)),
    v.transform((items) => items.filter((each): each is NonNullable<typeof each> => each !== null)),
  );
}

/** An object with any keys, without its unreadable values. */
function mapOf<Item extends v.GenericSchema>(item: Item) {
  return v.pipe(
    v.record(v.string(), optional(item)),
    v.transform((map) => {
      const readable = Object.entries(map).filter(([, value]) => value !== undefined);
      return Object.fromEntries(readable) as Record<string, v.InferOutput<Item>>;
    }),
  );
}

/** Numbers by user id. */
function measure<Name extends string>(...names: Name[]) {
  const numbers = Object.fromEntries(names.map((name) => [name, optional(v.number())]));
  return optional(mapOf(v.object(numbers as Record<Name, ReturnType<typeof optional<v.NumberSchema<undefined>>>>)));
}

const span = { start: v.number(), end: v.number() };

const note = v.object({
  /** Without a category, a line still has its text. */
  category: v.fallback(v.string(), ''),
  text: v.string(),
  categoryName: optional(v.string()),
  /** Above 0 for a bulleted list item within its category. */
  formatting: optional(v.object({ nestingLevel: optional(v.number()) })),
});

export type Note = v.InferOutput<typeof note>;

const documentFields = v.object({
  sessionDocumentId: id,
  noteTemplateId: id,
  /** The platform may leave out an empty list, or set it to null. */
  notes: v.nullish(listOf(note), []),
});

/** The document of one template. */
export interface SessionDocument extends v.InferOutput<typeof documentFields> {
  /** True if a line, its category or its formatting is unreadable. */
  incomplete?: true;
}

const sessionDocument = v.pipe(
  v.unknown(),
  v.rawTransform<unknown, SessionDocument>(({ dataset, addIssue, NEVER }) => {
    const { readable, isComplete } = readPart(documentFields, dataset.value);
    if (readable) return { ...readable, ...(!isComplete && { incomplete: true as const }) };
    addIssue();
    return NEVER;
  }),
);

const transcript = v.object({
  /** Times are in milliseconds from the start of the recording. */
  utterances: optional(
    listOf(
      v.object({
        ...span,
        text: v.string(),
        speaker: v.string(),
        words: listOf(v.object({ ...span, text: v.string() })),
      }),
    ),
  ),
  /** User ids by speaker label; a user may have several labels. */
  speakerMapping: optional(mapOf(v.string())),
});

export type Transcript = v.InferOutput<typeof transcript>;

/** The parts of a Session (spec, Resources) beside its id and its state. */
const parts = v.object({
  providerUserId: id,
  // Absent or null is unknown, and only an empty list is none.
  noteTemplateIds: optional(listOf(id)),
  clientUserIds: optional(listOf(id)),
  partnerAppointmentId: optional(storableText),
  date: optional(v.string()),
  sessionCreatedAt: optional(v.string()),
  error: optional(v.object({ code: v.string(), message: v.string() })),
  sessionDurationMs: optional(v.number()),
  recordingDurationMs: optional(v.number()),
  /** Valid for a limited time. */
  recordingUrl: optional(v.string()),
  transcript: optional(transcript),
  topics: optional(listOf(v.object({ ...span, headline: v.string(), gist: v.string() }))),
  namedEntities: optional(
    listOf(v.object({ entityType: v.string(), name: v.string(), summary: optional(v.string()) })),
  ),
  notes: optional(listOf(sessionDocument)),
  analyticsSummary: optional(
    v.object({
      talkingRatio: measure('ratio', 'ratioLongTerm', 'duration', 'durationLongTerm'),
      speechCadence: measure('cadence', 'cadenceLongTerm'),
      responseTime: measure('time', 'timeLongTerm'),
      sentiment: measure('positive', 'positiveLongTerm', 'negative', 'negativeLongTerm'),
      timePerspective: measure('future', 'futureLongTerm', 'past', 'pastLongTerm'),
    }),
  ),
});

type Parts = v.InferOutput<typeof parts>;

/** A Session as the spec has it. */
export type Session = Parts & { sessionId: string; state: SessionState };

/** The readable part of a Session (spec, Resources). A field that the spec requires and that is absent is unreadable. */
export interface SessionAnswer extends Partial<Parts> {
  sessionId: string;
  /** One of SESSION_STATES, or another text of the platform. */
  state: string;
  /** The parts that are not or not completely readable; also `state`, if the spec does not name it. */
  incomplete: readonly ('state' | keyof Parts)[];
  /** True if some documents are unreadable, so that the platform has more notes than `notes`. */
  notesIncomplete?: true;
}

/** Maximum characters of a state. */
const MAX_STATE_LENGTH = 64;

/** Reads a value without its unreadable parts. @returns undefined if none is readable */
function readPart<Schema extends v.GenericSchema>(schema: Schema, value: unknown) {
  let isComplete = true;
  // Valibot asks for the message of each fault, also of those for which it has a fallback.
  const message = () => {
    isComplete = false;
    return '';
  };
  const { typed, output } = v.safeParse(schema, value, { message, abortEarly: true });
  return { readable: typed ? output : undefined, isComplete };
}

/**
 * Reads a Session. Loses only the smallest unreadable parts: a field, or a document, line, word or user of a list.
 *
 * @returns the Session, or the JSON Pointer of the fault without which it is none
 */
export function readSession(value: unknown): { session: SessionAnswer } | { fault: string } {
  if (!isJsonObject(value)) return { fault: '' };
  const { sessionId, state, ...fields } = value;
  if (!v.is(id, sessionId)) return { fault: '/sessionId' };
  if (!v.is(id, state) || state.length > MAX_STATE_LENGTH) return { fault: '/state' };
  const incomplete: string[] = SESSION_STATES.some((known) => known === state) ? [] : ['state'];
  const read: Partial<Parts> = {};
  for (const [part, schema] of Object.entries(parts.entries)) {
    const { readable, isComplete } = readPart(schema, fields[part]);
    if (readable !== undefined) Object.assign(read, { [part]: readable });
    const hasPart = part === 'notes' && read.notes?.some((document) => document.incomplete);
    if (!isComplete || hasPart) incomplete.push(part);
  }
  const isLost = read.notes && read.notes.length < (fields.notes as unknown[]).length;
  const session = { sessionId, state, ...read, incomplete: incomplete as SessionAnswer['incomplete'] };
  return { session: isLost ? { ...session, notesIncomplete: true } : session };
}
