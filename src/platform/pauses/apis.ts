import { COMPLIANCE_OPERATIONS, SESSION_OPERATIONS, USER_OPERATIONS } from '../contract/capabilities.js';

/** The key of the pause of all user-management calls. */
export const USER_MANAGEMENT = 'user-management';

/** The key of the pause of all calls of sessions. */
export const SESSIONS = 'sessions';

/** The key of the pause of all calls of compliance jobs. */
export const COMPLIANCE = 'compliance';

/** The APIs whose calls pause, each by itself, by the key of its pause. Operations have pauses of their own, under their names. */
const APIS = {
  [USER_MANAGEMENT]: USER_OPERATIONS,
  [SESSIONS]: SESSION_OPERATIONS,
  [COMPLIANCE]: COMPLIANCE_OPERATIONS,
} as const;

export type Api = keyof typeof APIS;

/** An operation whose calls pause. */
export type PausingOperation = (typeof APIS)[Api][number];

const NAMES = Object.keys(APIS) as Api[];

/** The key of the API that an operation belongs to. Pure. */
export const apiOf = (operation: PausingOperation): Api =>
  NAMES.find((api) => APIS[api].some((each) => each === operation)) as Api;

/** True if a pause is that of an API, and not that of an operation. Pure. */
export const isApi = (key: string): boolean => key in APIS;

/** The keys of the pauses of an API and of its operations, the API first. Pure. */
export const keysOf = (api: Api): readonly string[] => [api, ...APIS[api]];

/** The keys of all pauses. */
export const KEYS = NAMES.flatMap(keysOf);
