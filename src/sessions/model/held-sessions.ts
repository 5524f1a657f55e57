import { HELD_USERS } from '../../people/store/legal-hold.js';

/** SQL arrays of the sessions of clients under a legal hold, and of what names them. */
export const HELD_SESSIONS = `ARRAY(SELECT id FROM sessions WHERE client_user_ids && ${HELD_USERS})`;
const PROCESSINGS = `SELECT processing_id FROM processing_sessions WHERE session = ANY (${HELD_SESSIONS})`;
const PLATFORM_IDS = `SELECT session_id FROM sessions WHERE client_user_ids && ${HELD_USERS}`;

/** Subjects of webhooks. */
export const HELD_SUBJECTS = `ARRAY(SELECT unnest(${HELD_USERS}) UNION ${PLATFORM_IDS} UNION ${PROCESSINGS})`;

/** Ids in the data of feed events: of sessions here and on the platform, and of processings. */
export const HELD_EVENT_IDS = `ARRAY(SELECT id::text FROM sessions WHERE client_user_ids && ${HELD_USERS}
  UNION SELECT shown_id::text FROM sessions WHERE client_user_ids && ${HELD_USERS} UNION ${PLATFORM_IDS} UNION ${PROCESSINGS})`;
