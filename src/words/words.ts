import { AUDIT_ACTIONS } from './audit-words.js';
import { PERSON_FIELDS } from './field-words.js';
import {
  ETA_UNKNOWN,
  IMPORT_GUARDS,
  IMPORT_STATES,
  PLANNED_OUTCOMES,
  ROW_CODES,
  ROW_OUTCOMES,
} from './import-words.js';
import { PERSON_CODES, PERSON_STATES, RESOLVE_ACTIONS } from './person-words.js';
import { labels, vocabulary, type Word } from './word.js';

/** The words of every state and code: the modules derive their types from them, the console and the CLI show them. */
export const WORDS = {
  personState: PERSON_STATES,
  personCode: PERSON_CODES,
  personField: PERSON_FIELDS,
  resolveAction: RESOLVE_ACTIONS,
  /** Those that the specification names, then those of this service. The platform may have others. */
  sessionState: labels({
    InProgress: 'In progress',
    Processing: 'Processing',
    Done: 'Done',
    Error: 'Error',
    Requested: 'Requested',
    Unknown: 'Outcome unknown',
    Rejected: 'Rejected',
  }),
  /** The outcome of a request for a session. */
  requestState: labels({
    Requested: 'Requested',
    Settled: 'Settled',
    Rejected: 'Rejected',
    Abandoned: 'Abandoned',
  }),
  complianceState: vocabulary({
    Uploading: { label: 'Uploading', hint: 'Its files are on their way to the platform.' },
    Submitting: { label: 'Submitting', hint: 'The platform has not answered yet.' },
    Unknown: {
      label: 'Outcome unknown',
      hint: 'No answer shows whether the platform accepted it. Look there, then resolve it.',
    },
    Rejected: { label: 'Rejected', hint: 'The platform did not accept it.' },
    Abandoned: { label: 'Abandoned', hint: 'An operator ended it.' },
    Submitted: { label: 'Submitted', hint: 'The platform is checking it.' },
    Completed: { label: 'Completed' },
    Failed: { label: 'Failed', hint: 'The platform could not check it.' },
  }),
  complianceReview: labels({
    'submission-unknown': 'Submission outcome unknown',
    'result-unreadable': 'Result unreadable',
  }),
  deliveryState: vocabulary({
    received: { label: 'Received', hint: 'A worker processes it as soon as one is free.' },
    processed: { label: 'Processed', hint: 'This service did everything that its event requires.' },
    ignored: { label: 'Ignored', hint: 'An operator dismissed it.' },
    'not-understood': {
      label: 'Not understood',
      hint: 'It is genuine, but this version cannot act on it. Replay it after an upgrade, or dismiss it.',
    },
    failed: { label: 'Retrying', hint: 'It failed and is retried automatically.' },
    dead: {
      label: 'Permanently failed',
      hint: 'It failed too often and is not retried. Fix the cause, then replay it.',
    },
  }),
  subscriptionState: labels({
    active: 'Active',
    retrying: 'Retrying',
    paused: 'Paused',
    'cursor-expired': 'Cursor expired',
  }),
  pauseReason: labels({
    requested: 'Paused by a user',
    'endpoint-gone': 'The endpoint answered 410',
    'no-success': 'No attempt succeeded for five days',
    'cursor-expired': 'Undelivered events were deleted, or the database was restored',
  }),
  pushFault: labels({
    'no-connection': 'Its host is unknown, refuses the connection or does not answer',
    tls: 'Its certificate is not valid, or its port does not speak TLS',
    timeout: 'No answer within 15 seconds',
    'no-answer': 'The connection ended without an answer',
    redirect: 'It answered with a redirect, which is not followed',
    'error-status': 'It answered with an error',
    'address-not-allowed': 'Its private address is not in SUBSCRIPTION_HOSTS_ALLOWED',
    internal: 'notebridge could not make the attempt; its log says why',
  }),
  importState: IMPORT_STATES,
  plannedOutcome: PLANNED_OUTCOMES,
  rowOutcome: ROW_OUTCOMES,
  rowCode: ROW_CODES,
  importGuard: IMPORT_GUARDS,
  etaUnknown: ETA_UNKNOWN,
  auditAction: AUDIT_ACTIONS,
  healthState: vocabulary({
    ok: { label: 'OK', hint: 'Everything works.' },
    degraded: { label: 'Degraded', hint: 'Some parts do not work, or need attention. All others work.' },
    down: { label: 'Down', hint: 'Nothing can be stored, so requests are rejected.' },
    stopping: { label: 'Stopping', hint: 'This process is stopping. Another one answers requests.' },
  }),
};

export type Vocabulary = keyof typeof WORDS;
export type CodeOf<Name extends Vocabulary> = keyof (typeof WORDS)[Name];

/** The codes of a vocabulary, in its order. */
export const codesOf = <Code extends string>(words: Record<Code, Word>): Code[] => Object.keys(words) as Code[];

/** The label of a code; of an unknown one, which another version may send, the code itself. */
export const labelOf = (name: Vocabulary, code: string): string =>
  (WORDS[name] as Partial<Record<string, Word>>)[code]?.label ?? code;

/** The label of a code of a row or of its person. */
export const labelOfReason = (code: string): string =>
  code in ROW_CODES ? labelOf('rowCode', code) : labelOf('personCode', code);

/** A label within a sentence. */
export const inSentence = (label: string): string =>
  /^[A-Z][a-z ]/.test(label) ? label.charAt(0).toLowerCase() + label.slice(1) : label;
