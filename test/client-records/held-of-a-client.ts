/** The tables in the list of a client's data, each with the place of its data in the export. */
export const PLACES: Record<string, string> = {
  people: 'client',
  client_providers: 'client.providers',
  email_claims: 'client.trace.known.emailClaim',
  former_ids: 'client.formerIds',
  platform_users: 'client.otherPlatformUserIds',
  platform_calls: 'calls',
  imports: 'importRows.import',
  import_rows: 'importRows',
  feed_events: 'events',
  webhook_deliveries: 'deliveries',
  sessions: 'sessions',
  session_documents: 'sessions.notes',
  document_revisions: 'sessions.notes.items',
  session_insights: 'sessions.insights',
  processing_sessions: 'sessions.processings',
};

const because = (reason: string, ...tables: string[]) => Object.fromEntries(tables.map((table) => [table, reason]));

/** Every other table, with the reason why the list does not need it. */
export const NOT_LISTED: Record<string, string> = {
  ...because(
    'It holds no data of people.',
    'key_uses',
    'api_keys',
    'feed_state',
    'sending_hold',
    'subscriptions',
    'subscription_attempts',
    'processes',
  ),
  ...because(
    'It holds no data of people.',
    'browser_sessions',
    'audit_unlinked',
    'audit_links',
    'audit_cuts',
    'workers',
  ),
  ...because('It holds no data of people.', 'webhook_receiver'),
  ...because(
    'The accounting of disclosures shows the audit log of a client.',
    'audit_entries',
    'audit_subjects',
    'audit_ranges',
  ),
  ...because('A job does not say which client it is about.', 'compliance_jobs'),
  ...because('It is about providers.', 'dependent_requeues'),
  ...because(
    'Its records are encrypted together, and deleted once the columns are chosen, or a day later. An erasure finds them by id.',
    'import_records',
  ),
  ...because(
    'It repeats an answer for a day, and is found only by a fingerprint. Sessions erase theirs.',
    'idempotency_records',
  ),
  ...because('It is a keyed fingerprint.', 'handed_out_urls'),
  ...because('It names operations and places in answers.', 'unreadable_answers'),
  ...because('It holds the ids of people and sessions whose calls failed in the last minutes.', 'platform_pauses'),
};

/** The values at a place of an export, of every item of a list. */
export function heldAt(value: unknown, [name, ...rest]: string[]): unknown[] {
  if (Array.isArray(value)) return value.flatMap((item) => heldAt(item, name === undefined ? [] : [name, ...rest]));
  if (value === null || value === undefined) return [];
  return name === undefined ? [value] : heldAt(Reflect.get(Object(value), name), rest);
}
