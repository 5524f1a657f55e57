import { bootstrapKey, OFF } from './secret-strength.js';
import { isSet, type Raw, withFiles } from './setting-files.js';
import type { Setting } from './setting-rules.js';
import * as is from './setting-rules.js';
import { checkedCertificates, postgresUrl, privateHost, publicUrl, redisUrl } from './transport-rules.js';

export type Role = 'api' | 'worker';

const DAY_SECONDS = 86_400;
const MONTH_SECONDS = 30 * DAY_SECONDS;
const KIB = 1024;
const MIB = KIB ** 2;
const GIB = KIB ** 3;

/**
 * Minimum of WEBHOOK_MAX_AGE_SECONDS, because a retry may keep the timestamp of the first try. An hour covers the five
 * retries of the specification with delays that double from 115 seconds: (1 + 2 + 4 + 8 + 16) * 115 + 6 * 5 = 3595.
 */
const MIN_AGE_WINDOW_SECONDS = 3_600;

const ONLY_PROTOCOL = 'must be http/json, the only protocol that this service speaks (port 4318 of a collector)';

const ROLES_RULE = 'must be api, worker or api,worker';

const OIDC = ['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_SCOPES_CLAIM', 'OIDC_SCOPES'];
const allOfOidc = is.togetherWith(OIDC);

/** Every setting: what it must be and its default. `.env.example` explains them. */
const SETTINGS = {
  PLATFORM_BASE_URL: is.platformUrl,
  PLATFORM_API_KEY: is.matching(
    /^[\x20-\x7e]+$/,
    'must hold the API key that the platform gave you, in one line of printable ASCII',
  ),
  PLATFORM_WEBHOOK_SECRET: is.secrets('must hold the webhook secret (comma-separated while one is being rotated)'),
  PLATFORM_PARTNER_DOMAIN: is.platformPage.optional(),
  PLATFORM_CONTRACT: is.text.optional(),
  PLATFORM_TIMEOUT_SECONDS: is.seconds(0.1, 60).or(10),
  PLATFORM_ANSWER_LIMIT: is.byteSize(64 * KIB).or(16 * MIB),
  HTTPS_PROXY: is.proxyUrl.optional(),
  NO_PROXY: is.list.or([]),
  USER_MANAGEMENT_CALLS_PER_MINUTE: is.wholeNumber(1, 1_000_000).or(300),
  UNKNOWN_OUTCOME_GRACE_SECONDS: is.seconds(0, DAY_SECONDS).or(60),
  SESSION_REFRESH_AFTER_SECONDS: is.seconds(1, MONTH_SECONDS).or(900),
  SESSION_REFRESH_EVERY_SECONDS: is.seconds(1, MONTH_SECONDS).or(600),
  COMPLIANCE_REFRESH_AFTER_SECONDS: is.seconds(0.1, MONTH_SECONDS).or(5),
  COMPLIANCE_REFRESH_EVERY_SECONDS: is.seconds(0.1, MONTH_SECONDS).or(5),
  HOLD_SENDING: is.flag.or(false),
  REDIRECT_ALLOWED_ORIGINS: is.httpUrls.or([]),
  PRIVATE_HOSTS_ALLOWED: is.flag.optional(),
  SUBSCRIPTION_HOSTS_ALLOWED: is.hosts.or([]),

  ADMIN_API_KEY: bootstrapKey,
  OIDC_ISSUER: is.issuer.optional().and(allOfOidc),
  OIDC_CLIENT_ID: is.text.optional().and(allOfOidc),
  OIDC_CLIENT_SECRET: is.text.optional().and(allOfOidc),
  OIDC_SCOPES_CLAIM: is.text.optional().and(allOfOidc),
  OIDC_SCOPES: is.text.optional().and(allOfOidc),
  CONSOLE_KEY_SIGN_IN: is.flag.or(true),
  SESSION_IDLE_MINUTES: is.wholeNumber(1, 480).or(30),
  REQUIRE_ON_BEHALF_OF: is.flag.or(false),

  PORT: is.wholeNumber(0, 65_535).or(3000),
  HOST: privateHost.or('127.0.0.1'),
  PUBLIC_URL: publicUrl.optional(),
  TRUSTED_PROXIES: is.addressRanges.or([]),
  ROLES: is
    .listOf<Role>(ROLES_RULE, (role) => role === 'api' || role === 'worker')
    .and(is.rule(ROLES_RULE, (value) => String(value) !== ''))
    .or(['api', 'worker']),
  PLAINTEXT_HOSTS: is.list.or([]),
  NODE_TLS_REJECT_UNAUTHORIZED: checkedCertificates.optional(),
  MAX_CONNECTIONS: is.wholeNumber(1, 1_000_000).or(2_000),
  SHUTDOWN_DELAY_SECONDS: is.seconds(0, 60).or(0),
  HEADERS_TIMEOUT_SECONDS: is.seconds(0.1, 3_600).or(10),
  SILENCE_TIMEOUT_SECONDS: is.seconds(0.1, 3_600).or(120),
  BODY_TIMEOUT_SECONDS: is.seconds(1, 3_600).or(30),
  // The minimum leaves room for a PDF of 25 MiB.
  BODY_MEMORY_LIMIT: is.byteSize(32 * MIB).or(96 * MIB),
  WEBHOOK_BODY_LIMIT: is.byteSize(1024).or(5 * MIB),
  WEBHOOK_MEMORY_LIMIT: is.byteSize('WEBHOOK_BODY_LIMIT').or(64 * MIB),
  WEBHOOK_MAX_AGE_SECONDS: is.wholeNumber(MIN_AGE_WINDOW_SECONDS, 366 * DAY_SECONDS).optional(),
  REQUESTS_PER_CALLER: is.wholeNumber(1, 10_000).or(16),
  WAITING_REQUESTS_PER_CALLER: is.wholeNumber(1, 10_000).or(200),
  KEY_DAILY_BYTES: is.byteSize(1024).or(GIB),
  EVENT_STREAMS_PER_KEY: is.wholeNumber(1, 10_000).or(20),

  DATABASE_URL: postgresUrl.optional(),
  DATABASE_OWNER_URL: postgresUrl.optional(),
  DATABASE_CONNECTIONS: is.wholeNumber(12, 1_000).or(18),
  REDIS_URL: redisUrl.optional(),
  QUEUE_PREFIX: is.matching(/^[A-Za-z0-9_-]{1,40}$/, 'must be 1 to 40 letters, digits, _ or -').or('notebridge'),
  DATA_DIR: is.text.or('.data'),
  DISK_RESERVE: is.byteSize(0).or(GIB),
  DATABASE_SIZE_LIMIT: is.byteSize('DISK_RESERVE').optional(),
  DATA_KEYS: is.keys,
  FINGERPRINT_KEYS: is.keys,
  AUDIT_KEYS: is.keys,
  AUDIT_HEADS_URL: publicUrl.optional(),

  IMPORT_MAX_DELETES: is.threshold.or('10%,5'),
  IMPORT_MAX_PROVIDER_REMOVALS: is.threshold.or('10%,5'),
  IMPORT_BODY_LIMIT: is.byteSize(1024).or(2 * GIB),
  IMPORT_MAX_ROWS: is.wholeNumber(1, 10_000_000).or(3_000_000),

  RETENTION_DAYS: is.wholeNumber(1, 36_500).or(90),
  CALLS_RETENTION_DAYS: is.keptDays().optional(),
  DELIVERIES_RETENTION_DAYS: is.keptDays().optional(),
  FEED_RETENTION_DAYS: is.keptDays().optional(),
  IMPORT_ROWS_RETENTION_DAYS: is.keptDays().optional(),
  RECORDINGS_RETENTION_DAYS: is.keptDays().optional(),
  NOTES_RETENTION_DAYS: is.keptDays().or('off'),
  TRANSCRIPTS_RETENTION_DAYS: is.keptDays().or('off'),
  COMPLIANCE_RETENTION_DAYS: is.keptDays().or('off'),
  AUDIT_RETENTION_DAYS: is.keptDays(365).or(2_192),
  ERASE_NOTES_OF_DELETED_CLIENTS: is.oneOf(['keep', 'erase']).or('keep'),

  API_DOCS: is.flag.or(true),
  LOG_LEVEL: is.oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).or('info'),
  OTEL_EXPORTER_OTLP_ENDPOINT: publicUrl.optional(),
  OTEL_EXPORTER_OTLP_HEADERS: is.text.optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: is.matching(/^http\/json$/, ONLY_PROTOCOL).optional(),
};

type Table = typeof SETTINGS;
type Value<Name extends keyof Table> = Table[Name] extends Setting<infer T> ? T : never;
type OptionalName = { [Name in keyof Table]: undefined extends Value<Name> ? Name : never }[keyof Table];
type Values = { [Name in Exclude<keyof Table, OptionalName>]: Value<Name> } & { [Name in OptionalName]?: Value<Name> };

/** A class with the settings of the table as its fields. */
const Settings = class {
  constructor(raw: Raw = {}) {
    for (const [name, { read, fallback }] of Object.entries<Setting<unknown>>(SETTINGS)) {
      const text = raw[name];
      Reflect.set(this, name, isSet(text) ? read(text) : fallback);
    }
  }
} as new (
  raw?: Raw,
) => Values;

/** Time beyond a call's timeout that a shutdown may take, to store the outcome of the last call and to close. */
const AFTER_LAST_CALL_SECONDS = 10;

/** The environment of one process. */
export class Env extends Settings {
  /** True if callers may name addresses on private networks. Defaults to true if the platform is on loopback. */
  get privateHostsAllowed(): boolean {
    return this.PRIVATE_HOSTS_ALLOWED ?? this.isPlatformHere;
  }

  /** True if the platform is on loopback, as the simulator is. */
  get isPlatformHere(): boolean {
    return is.isLoopbackHost(new URL(this.PLATFORM_BASE_URL).hostname);
  }

  /** The first key; undefined if it is off. */
  get adminKey(): string | undefined {
    return this.ADMIN_API_KEY === OFF ? undefined : this.ADMIN_API_KEY;
  }

  /** True if a key opens a browser session. */
  get allowsKeySignIn(): boolean {
    return this.CONSOLE_KEY_SIGN_IN && !this.REQUIRE_ON_BEHALF_OF;
  }

  /**
   * How long a shutdown may take before the process exits, because closing a queue never times out. A call in flight may
   * use its whole timeout, because only this process will know its answer.
   */
  get shutdownDeadlineMs(): number {
    return (this.SHUTDOWN_DELAY_SECONDS + this.PLATFORM_TIMEOUT_SECONDS + AFTER_LAST_CALL_SECONDS) * 1_000;
  }

  hasRole(role: Role): boolean {
    return this.ROLES.includes(role);
  }
}

/**
 * Reads and validates an environment.
 *
 * @param raw usually `process.env`; unknown variables are ignored, blank ones are not set
 * @throws {Error} whose message lists every faulty variable and what it must be; never a value
 */
export function validateEnv(raw: Raw): Env {
  const proxies = { HTTPS_PROXY: raw.https_proxy, NO_PROXY: raw.no_proxy };
  const { settings, faults } = withFiles({ ...proxies, ...raw }, Object.keys(SETTINGS));
  const env = new Env(settings);
  const values = { ...env };
  const lines = Object.entries<Setting<unknown>>(SETTINGS).flatMap(([name, { rules }]) => {
    const fault = faults.get(name);
    if (fault !== undefined) return `  ${fault}`;
    const broken = rules.flatMap((faultOf) => faultOf(Reflect.get(env, name), values) ?? []);
    if (broken.length === 0) return [];
    return `  ${name} ${isSet(settings[name]) ? broken.join('; ') : `is not set: it ${broken[0]}`}`;
  });
  if (lines.length === 0) return env;
  throw new Error(`The environment is not usable; fix these settings (see .env.example):\n${lines.join('\n')}`);
}

/** The environment of this process. @throws {Error} as `validateEnv` */
export const readEnv = (): Env => validateEnv(process.env);
