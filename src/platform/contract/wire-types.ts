/** Bodies as they travel between the platform and its partners, as the spec names them; comments say what types can't. */

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
export type SessionType = (typeof SESSION_TYPES)[number];

/** Listed by the spec and "not yet supported" by it. */
export const COUPLE_SESSION_TYPES = ['CoupleStandard', 'CoupleSoap', 'CoupleDap'] as const satisfies SessionType[];
export const CLIENT_PRONOUNS = ['MasculineHim', 'FeminineHer', 'NeutralThem'] as const;
export type ClientPronouns = (typeof CLIENT_PRONOUNS)[number];
export const RECORDING_CONTENTS = ['DictatedNotes', 'Recording'] as const;
export type RecordingContent = (typeof RECORDING_CONTENTS)[number];
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
export type ComplianceCriterion = (typeof COMPLIANCE_CRITERIA)[number];
export const COMPLIANCE_CRITERIA_GROUPS = ['therapy_notes'] as const;
export type ComplianceCriteriaGroup = (typeof COMPLIANCE_CRITERIA_GROUPS)[number];
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
export type ProcessingEventType = (typeof PROCESSING_EVENT_TYPES)[number];
export const SESSION_EVENT_TYPES = [
  'SESSION_CREATED',
  'SESSION_PROCESSING_STARTED',
  'SESSION_PROCESSING_NOTES_COMPLETED',
  'SESSION_PROCESSING_COMPLETED',
  'SESSION_PROCESSING_FAILED',
] as const;
export type SessionEventType = (typeof SESSION_EVENT_TYPES)[number];
export const USER_EVENT_TYPES = ['USER_CREATED'] as const;
export type UserEventType = (typeof USER_EVENT_TYPES)[number];

export const EVENT_TYPES = [...PROCESSING_EVENT_TYPES, ...SESSION_EVENT_TYPES, ...USER_EVENT_TYPES] as const;
export type EventType = (typeof EVENT_TYPES)[number];
export const USER_ROLES = ['Client', 'HealthcareProvider', 'OrgAdmin'] as const;
export type UserRole = (typeof USER_ROLES)[number];

export const WEBHOOK_SIGNATURE_HEADER = 'x-service-signature';
/** Milliseconds since the Unix epoch. */
export const WEBHOOK_TIMESTAMP_HEADER = 'x-service-timestamp';
export const WEBHOOK_USER_AGENT = 'Service Webhook';

export interface CheckUserRequest {
  email: string;
}
export interface CheckUserResponse {
  isUserExists: boolean;
  /** Present when the user exists. */
  userId?: string;
}
export interface CreateProviderRequest {
  email: string;
  firstName: string;
  lastName: string;
  partnerUserId?: string;
}
export interface CreateProviderResponse {
  userId: string;
  inviteUrl: string;
}
export interface CreateClientRequest {
  firstName: string;
  lastName: string;
  /** The platform's userId of the primary provider. */
  therapistUserId: string;
  partnerUserId?: string;
  email?: string;
}
export interface CreateClientResponse {
  userId: string;
}
export interface SetClientProvidersRequest {
  /** The complete list; it replaces the one before. */
  providerUserIds: string[];
}
export interface InitiateAuthRequest {
  userId: string;
}
export interface InitiateAuthResponse {
  otpToken: string;
}

export interface RecordingInput {
  /** Concatenated in this order. */
  recordingUrls: string[];
  recordingContent: RecordingContent;
}
export interface TextInput {
  text: string;
}
export interface SessionInput {
  recording?: RecordingInput;
  text?: TextInput;
}

interface CreateSessionFields {
  providerUserId: string;
  clientUserId?: string;
  /** Only without clientUserId. */
  clientPronouns?: ClientPronouns;
  input: SessionInput;
  /** ISO 8601; the current time by default. */
  date?: string;
  partnerAppointmentId?: string;
  externalTreatmentPlan?: string;
}
/** Form A of the spec, marked work in progress there. */
export interface CreateSessionByType extends CreateSessionFields {
  sessionType: SessionType;
}
/** Form B of the spec. */
export interface CreateSessionByTemplates extends CreateSessionFields {
  noteTemplateIds: string[];
}
export type CreateSessionRequest = CreateSessionByType | CreateSessionByTemplates;
export interface CreateSessionResponse {
  sessionId: string;
}

/** At least one field; what is absent, null or blank stays as it is. */
export interface UpdateSessionRequest {
  noteTemplateIds?: string[];
  externalTreatmentPlan?: string;
  /** Speaker label to user UUID; recording sessions only. */
  speakerMapping?: Record<string, string>;
  /** Text-to-note sessions only. */
  input?: TextInput;
}
export interface UpdateSessionTemplatesRequest {
  noteTemplateIds: string[];
}

export interface Session {
  sessionId: string;
  partnerAppointmentId?: string | null;
  noteTemplateIds: string[];
  date?: string | null;
  sessionCreatedAt?: string | null;
  providerUserId: string;
  clientUserIds: string[];
  state: SessionState;
  error?: SessionError | null;
  sessionDurationMs?: number | null;
  recordingDurationMs?: number | null;
  /** Valid for a limited time. */
  recordingUrl?: string | null;
  transcript?: Transcript | null;
  topics?: Topic[] | null;
  namedEntities?: NamedEntity[] | null;
  notes?: SessionDocument[] | null;
  analyticsSummary?: AnalyticsSummary | null;
}
export interface SessionError {
  code: string;
  message: string;
}
/** Times in milliseconds from the start of the recording. */
export interface Transcript {
  utterances?: Utterance[] | null;
  /** Speaker label to user UUID; one user may have several labels. */
  speakerMapping?: Record<string, string> | null;
}
export interface Utterance {
  text: string;
  start: number;
  end: number;
  speaker: string;
  words: Word[];
}
export interface Word {
  text: string;
  start: number;
  end: number;
}
export interface Topic {
  headline: string;
  gist: string;
  start: number;
  end: number;
}
export interface NamedEntity {
  entityType: string;
  name: string;
  summary?: string | null;
}
/** One document a template. */
export interface SessionDocument {
  sessionDocumentId: string;
  noteTemplateId: string;
  notes: Note[];
}
export interface Note {
  category: string;
  categoryName?: string | null;
  text: string;
  /** Above 0: a bulleted list item within its category. */
  formatting?: { nestingLevel?: number | null } | null;
}

/** Keyed by user UUID. */
export type MeasureByUser<Field extends string> = Record<string, Partial<Record<Field, number | null>>>;
export interface AnalyticsSummary {
  talkingRatio?: MeasureByUser<'ratio' | 'ratioLongTerm' | 'duration' | 'durationLongTerm'> | null;
  speechCadence?: MeasureByUser<'cadence' | 'cadenceLongTerm'> | null;
  responseTime?: MeasureByUser<'time' | 'timeLongTerm'> | null;
  sentiment?: MeasureByUser<'positive' | 'positiveLongTerm' | 'negative' | 'negativeLongTerm'> | null;
  timePerspective?: MeasureByUser<'future' | 'futureLongTerm' | 'past' | 'pastLongTerm'> | null;
}

export interface ComplianceFile {
  id: string;
  /** From the compliance upload-url endpoint. */
  url: string;
}
export interface SubmitComplianceJobRequest {
  files: ComplianceFile[];
  criteria?: ComplianceCriterion[];
  criteriaGroups?: ComplianceCriteriaGroup[];
}
export interface SubmitComplianceJobResponse {
  jobId: string;
}

/** The spec states no payload for PROCESSING_SESSION_NOTES_FINISHED. */
export type ProcessingEvent =
  | { eventType: 'PROCESSING_SESSION_FINISHED'; payload: { processingId: string } }
  | { eventType: 'PROCESSING_SESSION_NOTES_FINISHED'; payload?: unknown }
  | { eventType: 'COMPLIANCE_JOB_COMPLETED' | 'COMPLIANCE_JOB_FAILED'; payload: { jobId: string } }
  | { eventType: 'SMART_EDIT_JOB_COMPLETED' | 'SMART_EDIT_JOB_FAILED'; payload: { jobId: string } };

export interface SessionEvent {
  eventType: SessionEventType;
  sessionId: string;
  /** Null: what was told could not be read. */
  providerUserId: string | null;
  partnerAppointmentId?: string | null;
  /** Null: not yet determined. Final on NOTES_COMPLETED and COMPLETED, provisional before. */
  aiNotesEnabled: boolean | null;
}

export interface UserEvent {
  eventType: UserEventType;
  payload: { userId: string; externalUserId?: string | null; role: UserRole };
}

export type WebhookEvent = ProcessingEvent | SessionEvent | UserEvent;
