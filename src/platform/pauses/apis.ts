import { USER_OPERATIONS } from '../contract/capabilities.js';
import type { OperationName } from '../contract/operations.js';

/** The key of the pause of all user-management calls. */
export const USER_MANAGEMENT = 'user-management';

/** The APIs whose calls pause, by the keys of their pauses. Operations have pauses of their own, under their names. */
const APIS = {
  [USER_MANAGEMENT]: USER_OPERATIONS,
  sessions: [
    ...(['createSession', 'getSession', 'getProcessingSession', 'updateSession', 'updateSessionTemplates'] as const),
    ...(['recordingUploadUrl', 'initiateAuth'] as const),
  ],
  compliance: ['complianceUploadUrl', 'submitComplianceJob', 'getComplianceJob'],
} as const satisfies Record<string, readonly OperationName[]>;

export type Api = keyof typeof APIS;

const NAMES = Object.keys(APIS) as Api[];

/** The key of the API that an operation belongs to. Pure. */
export const apiOf = (operation: OperationName): Api =>
  NAMES.find((api) => APIS[api].some((each) => each === operation)) as Api;

/** True if a pause is that of an API, and not that of an operation. Pure. */
export const isApi = (key: string): boolean => key in APIS;

/** The keys of the pauses of an API and of its operations, the API first. Pure. */
export const keysOf = (api: Api): readonly string[] => [api, ...APIS[api]];

/** The keys of all pauses. */
export const KEYS = NAMES.flatMap(keysOf);
