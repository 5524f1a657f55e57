import * as v from 'valibot';

/** Bodies between the platform and its partners, as the spec names them. */

export const SESSION_TYPES = [
  'Intake',
  'Standard',
  'Soap',
  'Dap',
  'Girp',
  'Birp',
  'Mse',
  'Emdr',
  'PsychiatricSoap',
  'PsychiatricIntake',
  'CoupleStandard',
  'CoupleSoap',
  'CoupleDap',
  'GpSoap',
  'Bps',
  'HeadwaySoap',
] as const;

/** Listed by the spec and "not yet supported" by it. */
export const COUPLE_SESSION_TYPES = [
  'CoupleStandard',
  'CoupleSoap',
  'CoupleDap',
] as const satisfies (typeof SESSION_TYPES)[number][];
export const CLIENT_PRONOUNS = ['MasculineHim', 'FeminineHer', 'NeutralThem'] as const;
export const RECORDING_CONTENTS = ['DictatedNotes', 'Recording'] as const;
export const SESSION_STATES = ['InProgress', 'Processing', 'Done', 'Error'] as const;
export type SessionState = (typeof SESSION_STATES)[number];

/** In characters, on create and on update (spec, Limits). */
export const TREATMENT_PLAN_MAX_LENGTH = 100_000;

export const COMPLIANCE_CRITERIA = [
  'provider_name_and_credentials',
  'client_name_and_dob',
  'care_delivery_method',
  'service_modality',
  'client_location',
  'provider_signature_and_date',
  'date_of_service',
  'session_start_and_stop_times',
  'attendees',
  'diagnostic_statement_present',
  'presenting_problem',
  'goals_addressed_in_session',
  'measurable_goals',
  'interventions_utilized',
  'client_response_to_interventions',
  'risk_assessment',
  'mental_status_examination',
  'plan',
  'intensive_level_of_care',
  'current_symptoms_and_behaviors',
  'progress_towards_goals',
  'specific_services_rendered',
] as const;
export const COMPLIANCE_CRITERIA_GROUPS = ['therapy_notes'] as const;
export const RECORDER_VARIANTS = ['in-person', 'virtual'] as const;
export type RecorderVariant = (typeof RECORDER_VARIANTS)[number];

export const PROCESSING_EVENT_TYPES = [
  'PROCESSING_SESSION_FINISHED',
  'PROCESSING_SESSION_NOTES_FINISHED',
  'COMPLIANCE_JOB_COMPLETED',
  'COMPLIANCE_JOB_FAILED',
  'SMART_EDIT_JOB_COMPLETED',
  'SMART_EDIT_JOB_FAILED',
] as const;
export const SESSION_EVENT_TYPES = [
  'SESSION_CREATED',
  'SESSION_PROCESSING_STARTED',
  'SESSION_PROCESSING_NOTES_COMPLETED',
  'SESSION_PROCESSING_COMPLETED',
  'SESSION_PROCESSING_FAILED',
] as const;
export type SessionEventType = (typeof SESSION_EVENT_TYPES)[number];
export const EVENT_TYPES = [...PROCESSING_EVENT_TYPES, ...SESSION_EVENT_TYPES, 'USER_CREATED'] as const;
export type EventType = (typeof EVENT_TYPES)[number];
export const USER_ROLES = ['Client', 'HealthcareProvider', 'OrgAdmin'] as const;
export type UserRole = (typeof USER_ROLES)[number];

/**
 * Characters (UTF-16 units) of an id that this service and the platform exchange, such as an appointment's; the
 * spec states no limit, and the platform's own ids are UUIDs.
 */
export const PLATFORM_ID_MAX = 512;

/** Answers whether a value can be an id as it stands in bodies and events: no database keeps NULs and halves of characters. */
export function isPlatformId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= PLATFORM_ID_MAX && !/[\0\p{Cs}]/u.test(value);
}

export const WEBHOOK_SIGNATURE_HEADER = 'x-service-signature';
/** Milliseconds since the Unix epoch. */
export const WEBHOOK_TIMESTAMP_HEADER = 'x-service-timestamp';

/** Selects its notes by a session type (form A of the spec, marked work in progress there) or by templates (form B). */
export type CreateTherapySessionRequest = {
  providerUserId: string;
  clientUserId?: string;
  /** Only without clientUserId. */
  clientPronouns?: (typeof CLIENT_PRONOUNS)[number];
  input: {
    /** The files are concatenated in this order. */
    recording?: { recordingUrls: string[]; recordingContent: (typeof RECORDING_CONTENTS)[number] };
    text?: { text: string };
  };
  /** ISO 8601; the current time by default. */
  date?: string;
  partnerAppointmentId?: string;
  externalTreatmentPlan?: string;
} & ({ sessionType: (typeof SESSION_TYPES)[number] } | { noteTemplateIds: string[] });

/** At least one field; what is absent, null or blank stays as it is. */
export interface UpdateTherapySessionRequest {
  noteTemplateIds?: string[];
  externalTreatmentPlan?: string;
  /** Speaker label to user UUID; recording sessions only. */
  speakerMapping?: Record<string, string>;
  /** Text-to-note sessions only. */
  input?: { text: string };
}

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
 * are. An optional part that does not fit counts as absent, and so does each document of its notes by itself: the rest
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
  return { session, leftOut };
}

/** The URL is from the compliance upload-url endpoint. */
export type ComplianceFile = { id: string; url: string };
export interface SubmitComplianceJobRequest {
  files: ComplianceFile[];
  criteria?: (typeof COMPLIANCE_CRITERIA)[number][];
  criteriaGroups?: (typeof COMPLIANCE_CRITERIA_GROUPS)[number][];
}

export interface SessionEvent {
  eventType: SessionEventType;
  sessionId: string;
  /** Null: the event's value could not be read. */
  providerUserId: string | null;
  partnerAppointmentId?: string | null;
  /** Null: not yet determined. Final on NOTES_COMPLETED and COMPLETED, provisional before. */
  aiNotesEnabled: boolean | null;
}
