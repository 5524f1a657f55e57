const NOT_STORED =
  'not stored, and the platform repeats each at most five times. Without them, this service finds only what it looks up: unfinished sessions and compliance jobs that it knows. It finds no other session, and no note that changes after the end of its session.';
const REFUSED = `Requests refused since the last genuine webhook: {count}. {fault} If the platform sent them, they are ${NOT_STORED}`;
const THEN_REFRESH = '{action} Then run npx notebridge refresh --since with the time at which this began.';

/**
 * All texts of health: what is wrong, and what to do. Ordered by importance, the most important first. The part that
 * reports the reason fills in `{name}`.
 */
export const HEALTH_TEXTS = {
  'database-unavailable': {
    cause: 'PostgreSQL cannot be reached, or has no free connection.',
    action: 'Check DATABASE_URL, that the server runs, and its number of connections.',
  },
  'database-read-only': {
    cause: 'PostgreSQL accepts no writes.',
    action:
      'Let DATABASE_URL name the primary, and set default_transaction_read_only to off for its role and database.',
  },
  'inbox-not-writable': {
    cause: 'Webhooks cannot be stored, so they are answered with 503.',
    action:
      'Check in pg_stat_activity whether a session locks the webhook tables, and whether PostgreSQL accepts writes.',
  },
  'audit-not-writable': {
    cause: 'The audit log cannot be written, so nothing is read or changed through the API.',
    action: 'See the log, and check the privileges and the free disk of the database.',
  },
  'no-worker': {
    cause: 'No process with the role worker is running.',
    action: 'Start one: its ROLES must contain worker. Accepted work is kept until then.',
  },
  'no-api': {
    cause: 'No process with the role api is running.',
    action: 'Start one: its ROLES must contain api. Until then, requests and webhooks are not answered.',
  },
  'queue-unavailable': {
    cause: '{fault} Work that is due waits, and continues once they are available.',
    action: 'Check {setting}, and that the server runs.',
  },
  'processes-differ': {
    cause: 'The processes use different queues or limits, so the platform may be called too often ({groups}).',
    action: 'Give all of them the same REDIS_URL, QUEUE_PREFIX and USER_MANAGEMENT_CALLS_PER_MINUTE, and restart them.',
  },
  'no-answer': {
    cause: 'These checks took longer than 2 seconds: {parts}.',
    action: 'See the log, and check the load of PostgreSQL and of this machine.',
  },
  'check-failed': {
    cause: 'These checks failed: {parts}.',
    action: 'See the log for the error.',
  },
  'missing-data-key': {
    cause: 'DATA_KEYS lacks keys that encrypted stored data: {keys}.',
    action: 'Add them after the first key and restart. No data is lost.',
  },
  'unreadable-values': {
    cause: 'Encrypted values that cannot be decrypted, because they were changed, moved or truncated: {count}.',
    action: 'Restore their rows, which the log names, from a backup.',
  },
  'grants-altered': {
    cause: 'Keys or sessions were changed outside this service, or AUDIT_KEYS lacks a key: {rows}.',
    action:
      'They are not accepted. If no key is missing, find out who changed them. Then revoke these keys and end these sessions.',
  },
  'audit-chain-broken': {
    cause: '{fault}',
    action: 'Run npx notebridge audit verify, and keep a copy of the database.',
  },
  'audit-entries-altered': {
    cause: 'In the last {days} days, audit entries were inserted without a valid MAC, or removed.',
    action: 'Run npx notebridge audit verify, and keep a copy of the database.',
  },
  'audit-entries-unlinked': {
    cause:
      'Audit entries have waited {seconds} seconds for their link in the chain. Until then, a removed entry is not noticed.',
    action: 'Processes with the role worker link entries within a second: see their logs.',
  },
  'audit-heads-refused': {
    cause: 'AUDIT_HEADS_URL has not accepted the newest link of the audit log for {minutes} minutes.',
    action: 'Check this URL and its answers. The log of this service also has each link.',
  },
  'sending-held': {
    cause: 'Only lookups go to the platform, because {by} holds sending ({reason}).',
    action: 'Release it with {command}.',
  },
  'sending-held-by-setting': {
    cause: 'Only lookups go to the platform, because HOLD_SENDING is true.',
    action: 'Remove the setting and restart.',
  },
  'not-configured': {
    cause: 'PLATFORM_CONTRACT has no apiKey.header, so nothing is sent.',
    action: 'Set it and restart. Work is kept.',
  },
  'platform-unauthorized': {
    cause: 'The platform rejects PLATFORM_API_KEY: {operations}.',
    action:
      'Correct the key and restart. If other operations accept it, ask the platform for the missing right. Work is kept.',
  },
  'platform-address': {
    cause: 'These calls reach another server than the platform: {operations}.',
    action: 'Check PLATFORM_BASE_URL, and the paths in PLATFORM_CONTRACT. Work is kept.',
  },
  'platform-fault': {
    cause: 'The platform cannot be reached or gives no readable answer: {operations}.',
    action: 'Run npx notebridge doctor to find the cause. Work is kept, and retried automatically.',
  },
  'platform-rejects': {
    cause: 'The platform refuses an operation twenty times in a row: {operations}.',
    action: 'Compare its request in PLATFORM_CONTRACT with the description of the platform. Work is kept.',
  },
  'rate-limited': {
    cause: 'The platform answered 429, so calls pause: {operations}.',
    action: 'They resume automatically. If this happens often, check what else uses PLATFORM_API_KEY.',
  },
  'unreadable-answers': {
    cause: 'Answers of the platform are unreadable, or are about another session: {operations}.',
    action:
      'Compare operations.NAME.response in PLATFORM_CONTRACT with an answer: npx notebridge contract check --sample FILE --operation NAME.',
  },
  'requests-late': {
    cause: 'Requests have waited for more than five minutes: {operations}.',
    action: 'See NotebridgeWorkWaits in the run-books.',
  },
  'sessions-late': {
    cause: 'Sessions have waited for more than five minutes to be fetched.',
    action: 'See NotebridgeWorkWaits in the run-books.',
  },
  'notes-late': {
    cause: 'Notes have not been fetched within five minutes of their event (last fault: {fault}).',
    action: 'See NotebridgeNotesAwaited in the run-books.',
  },
  'webhook-clock': {
    cause: `Genuine webhooks refused since the last accepted one: {count}. {fault} They are ${NOT_STORED}`,
    action: THEN_REFRESH,
  },
  'webhook-secret': { cause: REFUSED, action: THEN_REFRESH },
  'webhook-headers': { cause: REFUSED, action: THEN_REFRESH },
  'webhook-size': { cause: REFUSED, action: THEN_REFRESH },
  'webhook-address': { cause: REFUSED, action: THEN_REFRESH },
  'keys-expire': {
    cause: 'API keys expire within 30 days: {keys}.',
    action: 'Rotate them with npx notebridge keys rotate ID.',
  },
  'subscriptions-paused': {
    cause: 'Events are no longer pushed to endpoints of the EHR: {subscriptions}.',
    action:
      'See npx notebridge subscriptions. Correct each endpoint, then resume it: no event is lost. Only if events were deleted, or the database was restored, read the current state first, and resume with --after.',
  },
  'pushes-fail': {
    cause: 'Endpoints of the EHR have accepted no event for over ten minutes: {subscriptions}.',
    action: 'See npx notebridge subscriptions for their last answers. Attempts are repeated for five days.',
  },
  'pushes-break': {
    cause: 'notebridge itself fails to push events: {subscriptions}.',
    action: 'See its log for "the work on a row failed". A key that DATA_KEYS lacks has a cause of its own.',
  },
  'provider-needs-review': {
    cause: 'Providers that need a decision: {count}.',
    action: 'See npx notebridge people --kind provider --state needs-review; correct the EHR, or resolve them.',
  },
  'client-needs-review': {
    cause: 'Clients that need a decision: {count}.',
    action: 'See npx notebridge people --kind client --state needs-review; correct the EHR, or resolve them.',
  },
  'provider-failed': {
    cause: 'Providers that the platform rejected: {count}.',
    action: 'See npx notebridge people --kind provider --state failed; correct the EHR, or resolve them.',
  },
  'client-failed': {
    cause: 'Clients that the platform rejected: {count}.',
    action: 'See npx notebridge people --kind client --state failed; correct the EHR, or resolve them.',
  },
  'session-unknown': {
    cause: 'Session requests with an unknown outcome: {count}.',
    action: 'See npx notebridge sessions --state Unknown. Look for each on the platform, then resolve it.',
  },
  'session-unreadable': {
    cause: 'Sessions fetched within a day that have an unreadable part: {count}.',
    action: 'See incomplete in GET /v1/sessions, and compare PLATFORM_CONTRACT with an answer.',
  },
  'compliance-unknown': {
    cause: 'Compliance submissions with an unknown outcome: {count}.',
    action: 'See npx notebridge compliance --state Unknown. Look for each on the platform, then resolve it.',
  },
  'compliance-result-unreadable': {
    cause: 'Compliance jobs whose result cannot be read: {count}.',
    action:
      'Correct the key, or operations.getComplianceJob of PLATFORM_CONTRACT, then resolve each with link and its own job id (npx notebridge compliance --review result-unreadable).',
  },
  'delivery-dead': {
    cause: 'Webhooks that failed permanently: {count}.',
    action: 'See npx notebridge deliveries --state dead. Fix the cause, then replay them.',
  },
  'delivery-not-understood': {
    cause: 'Genuine webhooks that were not understood: {count}.',
    action: 'See npx notebridge deliveries --state not-understood. Replay them after an upgrade, or dismiss them.',
  },
  'import-needs-mapping': {
    cause: 'Imports whose columns are not clear: {count}.',
    action: 'See npx notebridge imports. Choose the columns within 24 hours.',
  },
  'import-planned': {
    cause: 'Imports whose plan needs confirmation: {count}.',
    action: 'See npx notebridge imports. Apply or cancel each.',
  },
  'import-paused': {
    cause: 'Paused imports: {count}.',
    action: 'See npx notebridge imports. Resume or cancel each.',
  },
  'import-dry-run': {
    cause: 'Dry runs whose plan can be applied: {count}.',
    action: 'See npx notebridge imports. Apply or cancel each.',
  },
} as const satisfies Record<string, { cause: string; action: string }>;

export type ReasonCode = keyof typeof HEALTH_TEXTS;

/**
 * The cause and the action of a code. Different values of several reasons stand next to each other, each followed by its
 * details: "checkUser (ECONNREFUSED, next probe at …), createClient".
 */
export function healthText(
  code: ReasonCode,
  values: readonly Readonly<Record<string, string | number>>[],
): [cause: string, action: string] {
  const { cause, action } = HEALTH_TEXTS[code];
  const textOf = (name: string) => {
    const details = new Map<string | number, Set<string | number>>();
    for (const { [name]: value, detail } of values) {
      if (value === undefined) continue;
      details.set(value, (details.get(value) ?? new Set()).add(detail ?? ''));
    }
    const shown = [...details].map(([value, all]) => [value, [...all].filter((detail) => detail !== '').join(', ')]);
    return shown.map(([value, detail]) => (detail ? `${value} (${detail})` : value)).join(', ');
  };
  const fill = (template: string) => template.replaceAll(/\{(\w+)\}/g, (_, name: string) => textOf(name));
  return [fill(cause), fill(action)];
}

/** A time as people read it, to the second. */
export const utc = (time: Date): string => `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
