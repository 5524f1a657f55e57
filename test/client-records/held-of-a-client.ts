/** Every table of the schema, and where an export of a client has what it holds of that client. */
export const EXPORTED: Record<string, string> = {
  Person: 'client',
  ClientProvider: 'client.providers',
  EmailClaim: 'client.trace.known.emailClaim',
  PlatformUser: 'unlinkedUsers',
  PlatformCall: 'calls',
  Import: 'importRows.import',
  ImportRow: 'importRows',
  ImportRawRows: 'importRows.read',
  FeedEvent: 'events',
  WebhookDelivery: 'deliveries',
  Session: 'sessions',
  SessionAlias: 'sessions.formerIds',
  SessionRequest: 'sessions.request',
  SessionCall: 'sessions.timeline.call',
  SessionDocument: 'sessions.notes',
  DocumentRevision: 'sessions.notes.items',
  SessionInsights: 'sessions.insights',
  ProcessingSession: 'sessions.processings',
  ProcessingNotice: 'sessions.notices',
};

const NOBODYS = 'It says nothing of anybody.';
const OF_THE_TRAIL = 'The accounting of disclosures shows the trail of a client.';
const OF_JOBS = 'Nothing says whom a job is about.';

/** Every other table, and why an export of a client does without it. */
export const NOT_EXPORTED: Record<string, string> = {
  VaultKey: NOBODYS,
  DependentRequeue: 'It is about a provider.',
  CallBudget: NOBODYS,
  Circuit: NOBODYS,
  PlatformAddress: NOBODYS,
  ImportReference: 'It names keyed fingerprints and providers, and what it says of clients goes when the plan is made.',
  ProviderKey: 'It is about providers.',
  ApiKey: NOBODYS,
  BrowserSession: NOBODYS,
  FailedAttempt: 'It is about whoever sent a key.',
  AuditEntry: OF_THE_TRAIL,
  AuditSubject: OF_THE_TRAIL,
  AuditUnsealed: NOBODYS,
  AuditSeal: NOBODYS,
  IdempotencyRecord: 'It repeats an answer for a day, and is found by a keyed fingerprint of its request alone.',
  ComplianceJob: OF_JOBS,
  ComplianceAlias: OF_JOBS,
  SmartEditJob: OF_JOBS,
  WebhookClaim: NOBODYS,
  WebhookRepeat: 'It waits for a moment to be counted in its delivery.',
  WebhookRejection: NOBODYS,
  HandedOutUrl: 'It is a keyed fingerprint.',
  Worker: NOBODYS,
};

/** What stands at a place of an export, of every item where there are several. */
export function heldAt(value: unknown, [name, ...rest]: string[]): unknown[] {
  if (Array.isArray(value)) return value.flatMap((item) => heldAt(item, name === undefined ? [] : [name, ...rest]));
  if (value === null || value === undefined) return [];
  return name === undefined ? [value] : heldAt(Reflect.get(Object(value), name), rest);
}
