import { HELD_USERS } from '../../people/store/legal-hold.js';

const IS_HELD = `ever_client_user_ids && ${HELD_USERS}`;

/** SQL arrays of the sessions that clients under a legal hold have or had, and of what names them. */
export const HELD_SESSIONS = `ARRAY(SELECT id FROM sessions WHERE ${IS_HELD})`;
const PROCESSINGS = `SELECT processing_id FROM processing_sessions WHERE session = ANY (${HELD_SESSIONS})`;
const PLATFORM_IDS = `SELECT session_id FROM sessions WHERE ${IS_HELD}`;

/** Subjects of webhooks. */
export const HELD_SUBJECTS = `ARRAY(SELECT unnest(${HELD_USERS}) UNION ${PLATFORM_IDS} UNION ${PROCESSINGS})`;

/** Ids in the data of feed events: of sessions and their aliases here, on the platform, and of processings. */
export const HELD_EVENT_IDS = `ARRAY(SELECT id::text FROM sessions WHERE ${IS_HELD}
  UNION SELECT id::text FROM sessions WHERE alias_of = ANY (${HELD_SESSIONS}) UNION ${PLATFORM_IDS} UNION ${PROCESSINGS})`;
