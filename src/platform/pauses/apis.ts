import { USER_OPERATIONS } from '../contract/capabilities.js';

/** The key of the pause of all user-management calls. */
export const USER_MANAGEMENT = 'user-management';

/** The key of the pause of all calls of sessions. */
export const SESSIONS = 'sessions';

/** The APIs whose calls pause, by the keys of their pauses. Operations have pauses of their own, under their names. */
const APIS = {
  [USER_MANAGEMENT]: USER_OPERATIONS,
  // Those that change a session are called within a request.
  [SESSIONS]: ['createSession', 'getSession', 'getProcessingSession'],
} as const;

export type Api = keyof typeof APIS;

/** An operation whose calls pause. */
export type PausingOperation = (typeof APIS)[Api][number];

/** The key of the API that an operation belongs to. Pure. */
export const apiOf = (operation: PausingOperation): Api =>
  USER_OPERATIONS.some((each) => each === operation) ? USER_MANAGEMENT : SESSIONS;

/** True if a pause is that of an API, and not that of an operation. Pure. */
export const isApi = (key: string): boolean => key in APIS;

/** The keys of the pauses of an API and of its operations, the API first. Pure. */
export const keysOf = (api: Api): readonly string[] => [api, ...APIS[api]];

/** The keys of all pauses. */
export const KEYS = [...keysOf(USER_MANAGEMENT), ...keysOf(SESSIONS)];
