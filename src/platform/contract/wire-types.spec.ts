import {
  CLIENT_PRONOUNS,
  COMPLIANCE_CRITERIA,
  COMPLIANCE_CRITERIA_GROUPS,
  COUPLE_SESSION_TYPES,
  PROCESSING_EVENT_TYPES,
  RECORDER_VARIANTS,
  RECORDING_CONTENTS,
  SESSION_EVENT_TYPES,
  SESSION_STATES,
  SESSION_TYPES,
  TREATMENT_PLAN_MAX_LENGTH,
  USER_ROLES,
} from './wire-types.js';

// Each list is written out as the specification has it: one that was changed by mistake would take other tests along.
it.each<[string, readonly string[], string]>([
  [
    'sessionType',
    SESSION_TYPES,
    'Intake, Standard, Soap, Dap, Girp, Birp, Mse, Emdr, PsychiatricSoap, PsychiatricIntake, CoupleStandard, ' +
      'CoupleSoap, CoupleDap, GpSoap, Bps, HeadwaySoap',
  ],
  ['sessionType of a couple', COUPLE_SESSION_TYPES, 'CoupleStandard, CoupleSoap, CoupleDap'],
  ['clientPronouns', CLIENT_PRONOUNS, 'MasculineHim, FeminineHer, NeutralThem'],
  ['input.recording.recordingContent', RECORDING_CONTENTS, 'DictatedNotes, Recording'],
  ['state of a session', SESSION_STATES, 'InProgress, Processing, Done, Error'],
  [
    'criteria',
    COMPLIANCE_CRITERIA,
    'provider_name_and_credentials, client_name_and_dob, care_delivery_method, service_modality, client_location, ' +
      'provider_signature_and_date, date_of_service, session_start_and_stop_times, attendees, ' +
      'diagnostic_statement_present, presenting_problem, goals_addressed_in_session, measurable_goals, ' +
      'interventions_utilized, client_response_to_interventions, risk_assessment, mental_status_examination, plan, ' +
      'intensive_level_of_care, current_symptoms_and_behaviors, progress_towards_goals, specific_services_rendered',
  ],
  ['criteriaGroups', COMPLIANCE_CRITERIA_GROUPS, 'therapy_notes'],
  ['variant of the recorder', RECORDER_VARIANTS, 'in-person, virtual'],
  [
    'eventType of the processing API',
    PROCESSING_EVENT_TYPES,
    'PROCESSING_SESSION_FINISHED, PROCESSING_SESSION_NOTES_FINISHED, COMPLIANCE_JOB_COMPLETED, ' +
      'COMPLIANCE_JOB_FAILED, SMART_EDIT_JOB_COMPLETED, SMART_EDIT_JOB_FAILED',
  ],
  [
    'eventType of a session',
    SESSION_EVENT_TYPES,
    'SESSION_CREATED, SESSION_PROCESSING_STARTED, SESSION_PROCESSING_NOTES_COMPLETED, ' +
      'SESSION_PROCESSING_COMPLETED, SESSION_PROCESSING_FAILED',
  ],
  ['role of a user', USER_ROLES, 'Client, HealthcareProvider, OrgAdmin'],
])('%s', (_field, values, spec) => {
  expect(values).toEqual(spec.split(', '));
});

it('externalTreatmentPlan has at most 100,000 characters', () => {
  expect(TREATMENT_PLAN_MAX_LENGTH).toBe(100_000);
});
