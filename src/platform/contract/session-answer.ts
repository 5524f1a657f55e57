import { isObject, listOf, listOrNone, mapOf, number, objectOf, orElse, type Read, text } from './read-parts.js';
import { isPlatformId, SESSION_STATES, type SessionState } from './wire-types.js';

/** An id of the platform that a database can store. */
const id: Read<string> = (value) => (isPlatformId(value) && value.trim() !== '' ? value : undefined);

/** A text that a database can store and index. */
const storableText: Read<string> = (value) => (value === '' || isPlatformId(value) ? value : undefined);

const span = { start: number, end: number };

/** Numbers by user id. */
const measure = <Name extends string>(...names: Name[]) =>
  mapOf(objectOf({}, Object.fromEntries(names.map((name) => [name, number])) as Record<Name, Read<number>>));

/** A line. Without a category it still has its text. */
const line = objectOf(
  { category: orElse(text, ''), text },
  {
    categoryName: text,
    /** Above 0 for a bulleted list item within its category. */
    formatting: objectOf({}, { nestingLevel: number }),
  },
);
const documentFields = objectOf({ sessionDocumentId: id, noteTemplateId: id, notes: listOrNone(line) }, {});

export type Note = NonNullable<ReturnType<typeof line>>;

/** The document of one template. */
export interface SessionDocument {
  sessionDocumentId: string;
  noteTemplateId: string;
  notes: Note[];
  /** True if a line, its category or its formatting is unreadable. */
  incomplete?: true;
}

const sessionDocument: Read<SessionDocument> = (value, lost) => {
  const lostParts = { any: false };
  const fields = documentFields(value, () => {
    lostParts.any = true;
  });
  if (fields === undefined) return undefined;
  if (lostParts.any) lost();
  const { sessionDocumentId, noteTemplateId, notes } = fields;
  return { sessionDocumentId, noteTemplateId, notes, ...(lostParts.any && { incomplete: true as const }) };
};

/** Fields that the spec requires, and without which the rest is still of use. */
const REQUIRED_PARTS = {
  providerUserId: id,
  noteTemplateIds: listOrNone(id),
  clientUserIds: listOrNone(id),
} as const;

/** The optional fields. */
const OPTIONAL_PARTS = {
  partnerAppointmentId: storableText,
  date: text,
  sessionCreatedAt: text,
  error: objectOf({ code: text, message: text }, {}),
  sessionDurationMs: number,
  recordingDurationMs: number,
  /** Valid for a limited time. */
  recordingUrl: text,
  transcript: objectOf(
    {},
    {
      /** Times are in milliseconds from the start of the recording. */
      utterances: listOf(
        objectOf({ ...span, text, speaker: text, words: listOf(objectOf({ ...span, text }, {})) }, {}),
      ),
      /** User ids by speaker label; a user may have several labels. */
      speakerMapping: mapOf(text),
    },
  ),
  topics: listOf(objectOf({ ...span, headline: text, gist: text }, {})),
  namedEntities: listOf(objectOf({ entityType: text, name: text }, { summary: text })),
  notes: listOf(sessionDocument),
  analyticsSummary: objectOf(
    {},
    {
      talkingRatio: measure('ratio', 'ratioLongTerm', 'duration', 'durationLongTerm'),
      speechCadence: measure('cadence', 'cadenceLongTerm'),
      responseTime: measure('time', 'timeLongTerm'),
      sentiment: measure('positive', 'positiveLongTerm', 'negative', 'negativeLongTerm'),
      timePerspective: measure('future', 'futureLongTerm', 'past', 'pastLongTerm'),
    },
  ),
} as const;

const PARTS: Readonly<Record<string, Read<unknown>>> = { ...REQUIRED_PARTS, ...OPTIONAL_PARTS };

type Values<Readers> = { [Name in keyof Readers]?: Readers[Name] extends Read<infer T> ? T : never };
type OrNull<Fields> = { [Name in keyof Fields]: Fields[Name] | null };

/** A Session as the spec has it. */
export type Session = Required<Values<typeof REQUIRED_PARTS>> &
  OrNull<Values<typeof OPTIONAL_PARTS>> & { sessionId: string; state: SessionState };

/** A part of a Session that an answer can lose. */
type SessionPart = 'state' | keyof typeof REQUIRED_PARTS | keyof typeof OPTIONAL_PARTS;

/**
 * The readable part of a Session (spec, Resources). A field that is absent although the spec requires it is unreadable:
 * what is known of it stays.
 */
export interface SessionAnswer extends Values<typeof REQUIRED_PARTS>, OrNull<Values<typeof OPTIONAL_PARTS>> {
  sessionId: string;
  /** One of SESSION_STATES, or another text of the platform. */
  state: string;
  /** True if the spec does not name the state. */
  isStateUnknown?: true;
  /** The parts that are not or not completely readable. */
  incomplete: readonly SessionPart[];
  /** True if some documents are unreadable, so that the platform has more notes than `notes`. */
  notesIncomplete?: true;
}

export type Transcript = NonNullable<SessionAnswer['transcript']>;

/** Maximum characters of a state. */
const MAX_STATE_LENGTH = 64;

const KNOWN_STATES: ReadonlySet<string> = new Set(SESSION_STATES);

/**
 * Reads a Session. Loses only the smallest unreadable parts: a field, or a document, line, word or user of a list. The
 * cost is linear in the answer, regardless of its faults.
 *
 * @returns the Session, or the JSON Pointer of the fault without which it is none
 */
export function readSession(value: unknown): { session: SessionAnswer } | { fault: string } {
  if (!isObject(value)) return { fault: '' };
  const sessionId = id(value.sessionId, () => {});
  if (sessionId === undefined) return { fault: '/sessionId' };
  const { state } = value;
  if (!isPlatformId(state) || state.trim() === '' || state.length > MAX_STATE_LENGTH) return { fault: '/state' };
  const isStateUnknown = !KNOWN_STATES.has(state);
  const incomplete = new Set<string>(isStateUnknown ? ['state'] : []);
  const parts: Record<string, unknown> = {};
  for (const [part, read] of Object.entries(PARTS)) {
    const field = value[part];
    const isOptional = part in OPTIONAL_PARTS;
    if (isOptional && field === null) parts[part] = null;
    if (isOptional && (field === undefined || field === null)) continue;
    const readable = read(field, () => incomplete.add(part));
    if (readable === undefined) incomplete.add(part);
    else parts[part] = readable;
  }
  const { notes } = parts as Pick<SessionAnswer, 'notes'>;
  const session = {
    sessionId,
    state,
    ...(isStateUnknown && { isStateUnknown }),
    ...(parts as Partial<SessionAnswer>),
    incomplete: [...incomplete] as SessionPart[],
    ...(notes && notes.length < (value.notes as unknown[]).length && { notesIncomplete: true as const }),
  };
  return { session };
}
