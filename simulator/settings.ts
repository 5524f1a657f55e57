import { USER_ROLES, type UserRole } from '../src/platform/contract/wire-types.js';
import { type Fields, isChoice, objectOf } from './body-fields.js';
import { invalid } from './refusal.js';
import { OPTIONAL_FIELDS, type OptionalField } from './sessions/optional-fields.js';

/** A range in milliseconds, drawn from evenly. */
export type RangeMs = [min: number, max: number];

/** How the platform behaves; changed at any time through PATCH /_simulator/settings. */
export interface Settings {
  /** User-management calls accepted in any sliding window (spec, Limits: 300 in 60 seconds). */
  callsPerWindow: number;
  windowSeconds: number;
  /** Form of Retry-After on a 429: whole seconds, an HTTP date, or none. */
  retryAfter: 'seconds' | 'date' | 'absent';
  /** From the sending of a request to its answer; a random share of it passes before the request arrives. */
  latencyMs: RangeMs;
  /** Whether a create with an email that somebody has already is refused with 400 or makes a second user. */
  duplicateEmails: 'reject' | 'allow';
  /** What a request for an unknown path is answered beside 404: as every error, or a web page as of another server. */
  unknownPaths: 'message' | 'page';
  /** USER_CREATED also for users that the API creates; the spec names only those of the platform's application. */
  userCreatedForApi: boolean;
  /** The role that USER_CREATED names; empty: the user's own. */
  userCreatedRole: UserRole | '';

  /** How the ids of users, sessions, documents and jobs are spelled. Calls must use this spelling. */
  idCase: 'lower' | 'upper';

  /** Whether the organisation has AI notes. */
  aiNotes: boolean;
  /** aiNotesEnabled on SESSION_CREATED: the usual value (text: false, recording: null) or the final one's opposite. */
  provisionalAiNotes: 'usual' | 'opposite';
  /** Milliseconds between two steps of a session or job; 0: only POST …/advance moves them. */
  stepMs: number;
  /** Share of sessions that end in Error, code low-content-transcript. */
  sessionFailureRate: number;
  /** Share of regenerations that end in Error, code low-content-transcript; the notes of before stay. */
  regenerationFailureRate: number;
  /** So many first look-ups of a session are answered 404, and as many of its processing id: it is not there at once. */
  hiddenLookUps: number;
  /** Whether a regenerated document keeps its sessionDocumentId. */
  documentIds: 'stable' | 'fresh';
  /** What an update answers: all of the Session, or its required fields alone (spec, Session). */
  updateAnswer: 'whole' | 'lean';
  /** Optional fields that a session in the state Done leaves out of every answer (spec, Session: "Required: no"). */
  doneLeavesOut: OptionalField[];
  /** Whether the events of the processing API accompany those of the session. */
  processingEvents: boolean;
  /** Payload of PROCESSING_SESSION_NOTES_FINISHED, which the spec does not show. */
  notesFinishedPayload: 'processingId' | 'sessionId' | 'empty' | 'absent';

  /** Where webhooks go; empty: nowhere, they are only recorded. */
  webhookUrl: string;
  webhookSecret: string;
  /** Milliseconds the receiver has (spec, Limits: 5 seconds). */
  webhookTimeoutMs: number;
  /** Retries after the first attempt (spec, Limits: up to 5). */
  webhookRetries: number;
  /** Delay before the first retry; it doubles with each. */
  webhookRetryBaseMs: number;
  /** Whether a retry is signed anew or repeats the first timestamp and signature. */
  webhookRetryTimestamp: 'fresh' | 'same';
  /** Deliveries under way at once. */
  webhookConcurrency: number;
  /** Share of deliveries that are sent twice. */
  webhookDuplicateRate: number;
  /** Share of deliveries that are never sent. */
  webhookDropRate: number;
  /** Each delivery waits so long before its first attempt. */
  webhookDelayMs: RangeMs;
  /** Each delivery waits a random part of this more, so that neighbours change places. Milliseconds. */
  webhookShuffleMs: number;

  /** Life of an upload URL in seconds. */
  uploadUrlSeconds: number;
  /** How a file that was uploaded is named: by a web address, or by one of a store (`s3://`). */
  fileUrls: 'web' | 's3';
  /** What upload URLs are signed for: '' takes any Content-Type, 'none' only requests without one, else exactly this. */
  uploadContentType: string;
  /** Uploads are cut after so many bytes; 0: never. */
  breakUploadsAfterBytes: number;
  /** Share of compliance jobs that fail. */
  complianceFailureRate: number;
  /** Life of an otpToken in seconds (spec, Authentication: not shown). */
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

/** Settings with some of them changed. @throws Refusal 400 that names a setting that is unknown or has a wrong value. */
export function changedSettings(settings: Settings, changes: unknown): Settings {
  const fields: Fields = objectOf(changes, 'The settings');
  for (const [name, value] of Object.entries(fields)) {
    if (!Object.hasOwn(CHECKS, name)) throw invalid(`There is no setting ${name}.`);
    if (!CHECKS[name as keyof Settings](value)) throw invalid(`Setting ${name} can't have this value.`);
  }
  return { ...settings, ...fields };
}
