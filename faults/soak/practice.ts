/**
 * The busiest practice that is soaked. LifeStance Health, among the largest in outpatient mental health, had over 7,400
 * clinicians at the end of 2024; each holds five sessions in eight hours, which is an assumption.
 */
const CLINICIANS = 7_400;
const SESSIONS_EACH = 5;
const DAY_SECONDS = 8 * 3_600;

/** 37,000 sessions in eight hours: 1.3 a second. */
export const SESSION_EVERY_MS = (DAY_SECONDS * 1_000) / (CLINICIANS * SESSIONS_EACH);

/** Sessions that the EHR asks for; all others begin in the platform's own application. */
export const ASKED_SHARE = 0.2;

/** Sessions whose notes are regenerated. */
export const REGENERATED_SHARE = 0.03;

/** New people, each sent alone. */
export const PERSON_EVERY_MS = 10_000;

/** How often an operator opens a list. */
export const LOOK_EVERY_MS = 2_000;

/** People of the import that begins an eight-hour run; a shorter one has fewer in proportion. */
export const CLIENTS = 4_000;
export const PROVIDERS = 400;

/** Imports of the same files again, as each night. */
export const REIMPORT_EVERY_MINUTES = 30;
