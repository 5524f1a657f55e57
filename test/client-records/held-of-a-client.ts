/** The exported tables, each with the place of its data in the export of a client. */
export const EXPORTED: Record<string, string> = {
  Person: 'client',
  ClientProvider: 'client.providers',
  EmailClaim: 'client.trace.known.emailClaim',
  FormerId: 'client.formerIds',
  PlatformUser: 'unlinkedUsers',
  PlatformCall: 'calls',
  Import: 'importRows.import',
  ImportRow: 'importRows',
  FeedEvent: 'events',
  WebhookDelivery: 'deliveries',
  Session: 'sessions',
  SessionDocument: 'sessions.notes',
  DocumentRevision: 'sessions.notes.items',
  SessionInsights: 'sessions.insights',
  ProcessingSession: 'sessions.processings',
};

const because = (reason: string, ...tables: string[]) => Object.fromEntries(tables.map((table) => [table, reason]));

/** Every other table, with the reason why an export does not need it. */
export const NOT_EXPORTED: Record<string, string> = {
  ...because('It holds no data of people.', 'KeyUse', 'CallBudget', 'CircuitBreaker', 'ApiKey', 'FeedEpoch'),
  ...because('It holds no data of people.', 'BrowserSession', 'AuditUnlinked', 'AuditLink', 'AuditCut', 'Worker'),
  ...because('It holds no data of people.', 'WebhookRejection'),
  ...because(
    'The accounting of disclosures shows the audit trail of a client.',
    'AuditEntry',
    'AuditSubject',
    'AuditRange',
  ),
  ...because('A job does not say which client it is about.', 'ComplianceJob'),
  ...because('It is about providers.', 'DependentRequeue'),
  ...because(
    'Its records are encrypted together, and deleted once the columns are chosen, or a day later.',
    'ImportRecords',
  ),
  ...because('It holds ids of people who are not known.', 'DeletedId'),
  ...because('It repeats an answer for a day, and is found only by a fingerprint.', 'IdempotencyRecord'),
  ...because('It is counted in its delivery within a moment.', 'WebhookRepeat'),
  ...because('It is a keyed fingerprint.', 'HandedOutUrl'),
  ...because('It spells the id of a user, a session or a job, which is in the export.', 'PlatformSpelling'),
};

/** The values at a place of an export, of every item of a list. */
export function heldAt(value: unknown, [name, ...rest]: string[]): unknown[] {
  if (Array.isArray(value)) return value.flatMap((item) => heldAt(item, name === undefined ? [] : [name, ...rest]));
  if (value === null || value === undefined) return [];
  return name === undefined ? [value] : heldAt(Reflect.get(Object(value), name), rest);
}
