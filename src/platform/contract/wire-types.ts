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

/** Listed in the spec as "not yet supported". */
export const COUPLE_SESSION_TYPES = SESSION_TYPES.filter((type) => type.startsWith('Couple'));
export const CLIENT_PRONOUNS = ['MasculineHim', 'FeminineHer', 'NeutralThem'] as const;
export const RECORDING_CONTENTS = ['DictatedNotes', 'Recording'] as const;
export const SESSION_STATES = ['InProgress', 'Processing', 'Done', 'Error'] as const;
export type SessionState = (typeof SESSION_STATES)[number];

/** Maximum characters (spec, Limits). */
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
export type JobEventType = Extract<EventType, `${string}_JOB_${string}`>;
export const USER_ROLES = ['Client', 'HealthcareProvider', 'OrgAdmin'] as const;
export type UserRole = (typeof USER_ROLES)[number];

/** Maximum UTF-16 units of an id that the platform sends or gets. The spec states no limit. */
export const PLATFORM_ID_MAX = 512;

/** True if a value can be an id in bodies and events. A database cannot store NUL or half a surrogate pair. */
export function isPlatformId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= PLATFORM_ID_MAX && !/[\0\p{Cs}]/u.test(value);
}

/** The form of an id that the platform makes. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** True if a value is an id of the form that the platform makes. */
export function isPlatformUuid(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value);
}

export const WEBHOOK_SIGNATURE_HEADER = 'x-service-signature';
/** Milliseconds since the Unix epoch. */
export const WEBHOOK_TIMESTAMP_HEADER = 'x-service-timestamp';

/** Selects notes by session type (form A of the spec, work in progress there) or by template (form B). */
export type CreateTherapySessionRequest = {
  providerUserId: string;
  clientUserId?: string;
  /** Only without clientUserId. */
  clientPronouns?: (typeof CLIENT_PRONOUNS)[number];
  input: {
    /** The platform concatenates the files in this order. */
    recording?: { recordingUrls: string[]; recordingContent: (typeof RECORDING_CONTENTS)[number] };
    text?: { text: string };
  };
  /** ISO 8601. Defaults to the current time. */
  date?: string;
  partnerAppointmentId?: string;
  externalTreatmentPlan?: string;
} & ({ sessionType: (typeof SESSION_TYPES)[number] } | { noteTemplateIds: string[] });

/** At least one field. Absent, null and blank fields stay unchanged. */
export interface UpdateTherapySessionRequest {
  noteTemplateIds?: string[];
  externalTreatmentPlan?: string;
  /** User ids by speaker label; recording sessions only. */
  speakerMapping?: Record<string, string>;
  /** Text-to-note sessions only. */
  input?: { text: string };
}

/** A file that was sent to a URL of the compliance upload-url endpoint. */
export type ComplianceFile = { id: string; url: string };
export interface SubmitComplianceJobRequest {
  files: ComplianceFile[];
  criteria?: (typeof COMPLIANCE_CRITERIA)[number][];
  criteriaGroups?: (typeof COMPLIANCE_CRITERIA_GROUPS)[number][];
}

export interface SessionEvent {
  eventType: SessionEventType;
  sessionId: string;
  /** Null if unreadable. */
  providerUserId: string | null;
  partnerAppointmentId?: string | null;
  /** Null if not determined yet. Final in NOTES_COMPLETED and COMPLETED, provisional before. */
  aiNotesEnabled: boolean | null;
}
