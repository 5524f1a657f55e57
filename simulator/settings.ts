import { USER_ROLES, type UserRole } from '../src/platform/contract/wire-types.js';
import { type Fields, isChoice, objectOf } from './body-fields.js';
import { invalid } from './refusal.js';
import { OPTIONAL_FIELDS, type OptionalField } from './sessions/optional-fields.js';

/** A range in milliseconds, with evenly distributed values. */
export type RangeMs = [min: number, max: number];

/** The behaviour of the platform. PATCH /_simulator/settings changes it at any time. */
export interface Settings {
  /** User-management calls accepted in any sliding window (spec, Limits: 300 in 60 seconds). */
  callsPerWindow: number;
  windowSeconds: number;
  /** Form of Retry-After on a 429: whole seconds, an HTTP date, or none. */
  retryAfter: 'seconds' | 'date' | 'absent';
  /** Latency of a call. A random share of it passes before the request arrives. */
  latencyMs: RangeMs;
  /** `reject`: a create with an email in use is rejected with 400. `allow`: it creates a second user. */
  duplicateEmails: 'reject' | 'allow';
  /** Body of the 404 for an unknown path: as of every error, or a web page as of another server. */
  unknownPaths: 'message' | 'page';
  /** Also sends USER_CREATED for users that the API creates; the spec names only those of the platform's application. */
  userCreatedForApi: boolean;
  /** The role in USER_CREATED; empty: the user's own. */
  userCreatedRole: UserRole | '';

  /** Case of the ids of users, sessions, documents and jobs. Calls must use the same case. */
  idCase: 'lower' | 'upper';

  /** True if the organisation has AI notes. */
  aiNotes: boolean;
  /** aiNotesEnabled on SESSION_CREATED: the usual value (text: false, recording: null) or the final one's opposite. */
  provisionalAiNotes: 'usual' | 'opposite';
  /** Milliseconds between two steps of a session or job; 0: only POST …/advance takes them. */
  stepMs: number;
  /** Share of sessions that end in Error, code low-content-transcript. */
  sessionFailureRate: number;
  /** Share of regenerations that end in Error, code low-content-transcript; earlier notes stay. */
  regenerationFailureRate: number;
  /** Number of first lookups of a session that return 404, and of its processing id, as on a lagging replica. */
  hiddenLookUps: number;
  /** True if a regenerated document keeps its sessionDocumentId. */
  documentIds: 'stable' | 'fresh';
  /** Answer to an update: the complete Session, or only its required fields (spec, Session). */
  updateAnswer: 'whole' | 'lean';
  /** Optional fields that are missing in every answer about a session in the state Done (spec, Session: "Required: no"). */
  doneLeavesOut: OptionalField[];
  /** True if events of the processing API are sent in addition to those of the session. */
  processingEvents: boolean;
  /** Payload of PROCESSING_SESSION_NOTES_FINISHED, which the spec does not show. */
  notesFinishedPayload: 'processingId' | 'sessionId' | 'empty' | 'absent';

  /** URL for webhooks; empty: they are only recorded. */
  webhookUrl: string;
  webhookSecret: string;
  /** Timeout for an answer in milliseconds (spec, Limits: 5 seconds). */
  webhookTimeoutMs: number;
  /** Retries after the first attempt (spec, Limits: up to 5). */
  webhookRetries: number;
  /** Delay before the first retry in milliseconds; it doubles with each retry. */
  webhookRetryBaseMs: number;
  /** `fresh`: a retry has a new timestamp and signature. `same`: it repeats the first ones. */
  webhookRetryTimestamp: 'fresh' | 'same';
  /** Maximum deliveries in flight. */
  webhookConcurrency: number;
  /** Share of deliveries that are sent twice. */
  webhookDuplicateRate: number;
  /** Share of deliveries that are never sent. */
  webhookDropRate: number;
  /** Delay before the first attempt of each delivery, in milliseconds. */
  webhookDelayMs: RangeMs;
  /** Maximum additional random delay in milliseconds, which shuffles deliveries. */
  webhookShuffleMs: number;

  /** Lifetime of an upload URL in seconds. */
  uploadUrlSeconds: number;
  /** Form of the URL of an uploaded file: a web URL, or one of a store (`s3://`). */
  fileUrls: 'web' | 's3';
  /** Content-Type that upload URLs are signed for: '' allows any, 'none' allows only requests without one. */
  uploadContentType: string;
  /** Uploads are cut after this many bytes; 0: never. */
  breakUploadsAfterBytes: number;
  /** Share of compliance jobs that fail. */
  complianceFailureRate: number;
  /** Lifetime of an otpToken in seconds (the spec does not state it). */
  otpSeconds: number;
}

export const DEFAULT_SETTINGS: Settings = {
  callsPerWindow: 300,
  windowSeconds: 60,
  retryAfter: 'seconds',
  latencyMs: [0, 0],
  duplicateEmails: 'reject',
  unknownPaths: 'message',
  userCreatedForApi: false,
  userCreatedRole: '',
  idCase: 'lower',
  aiNotes: true,
  provisionalAiNotes: 'usual',
  stepMs: 1_000,
  sessionFailureRate: 0,
  regenerationFailureRate: 0,
  hiddenLookUps: 0,
  documentIds: 'stable',
  updateAnswer: 'whole',
  doneLeavesOut: [],
  processingEvents: true,
  notesFinishedPayload: 'processingId',
  webhookUrl: '',
  webhookSecret: 'simulator-webhook-secret',
  webhookTimeoutMs: 5_000,
  webhookRetries: 5,
  webhookRetryBaseMs: 1_000,
  webhookRetryTimestamp: 'fresh',
  webhookConcurrency: 32,
  webhookDuplicateRate: 0,
  webhookDropRate: 0,
  webhookDelayMs: [0, 0],
  webhookShuffleMs: 0,
  uploadUrlSeconds: 900,
  fileUrls: 'web',
  uploadContentType: '',
  breakUploadsAfterBytes: 0,
  complianceFailureRate: 0,
  otpSeconds: 300,
};

type Check = (value: unknown) => boolean;
const flag: Check = (value) => typeof value === 'boolean';
const text: Check = (value) => typeof value === 'string';
const amount: Check = (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0;
const positive: Check = (value) => amount(value) && (value as number) > 0;
const rate: Check = (value) => amount(value) && (value as number) <= 1;
const range: Check = (value) =>
  Array.isArray(value) && value.length === 2 && value.every(amount) && value[0] <= value[1];
const webAddress: Check = (value) =>
  value === '' || (text(value) && /^https?:\/\//.test(value as string) && URL.canParse(value as string));
const among =
  (...choices: string[]): Check =>
  (value) =>
    isChoice(value, choices);

const optionalFields: Check = (value) => Array.isArray(value) && value.every((item) => isChoice(item, OPTIONAL_FIELDS));

const CHECKS: Record<keyof Settings, Check> = {
  callsPerWindow: positive,
  windowSeconds: positive,
  retryAfter: among('seconds', 'date', 'absent'),
  latencyMs: range,
  duplicateEmails: among('reject', 'allow'),
  unknownPaths: among('message', 'page'),
  userCreatedForApi: flag,
  userCreatedRole: among('', ...USER_ROLES),
  idCase: among('lower', 'upper'),
  aiNotes: flag,
  provisionalAiNotes: among('usual', 'opposite'),
  stepMs: amount,
  sessionFailureRate: rate,
  regenerationFailureRate: rate,
  hiddenLookUps: amount,
  documentIds: among('stable', 'fresh'),
  updateAnswer: among('whole', 'lean'),
  doneLeavesOut: optionalFields,
  processingEvents: flag,
  notesFinishedPayload: among('processingId', 'sessionId', 'empty', 'absent'),
  webhookUrl: webAddress,
  webhookSecret: text,
  webhookTimeoutMs: positive,
  webhookRetries: amount,
  webhookRetryBaseMs: amount,
  webhookRetryTimestamp: among('fresh', 'same'),
  webhookConcurrency: positive,
  webhookDuplicateRate: rate,
  webhookDropRate: rate,
  webhookDelayMs: range,
  webhookShuffleMs: amount,
  uploadUrlSeconds: positive,
  fileUrls: among('web', 's3'),
  uploadContentType: text,
  breakUploadsAfterBytes: amount,
  complianceFailureRate: rate,
  otpSeconds: positive,
};

/** Settings with changes. @throws Refusal 400 that names an unknown setting, or one with a wrong value */
export function changedSettings(settings: Settings, changes: unknown): Settings {
  const fields: Fields = objectOf(changes, 'The settings');
  for (const [name, value] of Object.entries(fields)) {
    if (!Object.hasOwn(CHECKS, name)) throw invalid(`Unknown setting ${name}.`);
    if (!CHECKS[name as keyof Settings](value)) throw invalid(`Setting ${name} cannot have this value.`);
  }
  return { ...settings, ...fields };
}
