import { IsDefined, IsOptional, ValidateIf } from 'class-validator';
import { OFF } from './secret-strength.js';
import {
  BootstrapKey,
  ByteSize,
  type Days,
  Flag,
  HttpsUrl,
  HttpUrls,
  KeptDays,
  Keys,
  List,
  Matching,
  OneKey,
  OneOf,
  ProxyUrl,
  Read,
  Rule,
  Seconds,
  Secrets,
  WholeNumber,
} from './setting.decorators.js';
import {
  AddressRanges,
  CheckedCertificates,
  Hosts,
  ListenHost,
  PostgresUrl,
  PublicUrl,
  RedisUrl,
} from './transport.decorators.js';
import { isPlatformHere } from './urls.js';

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

const THRESHOLD = /^(unlimited|\d{1,3}(\.\d+)?%,\d{1,7})$/;
const THRESHOLD_RULE = 'must be a percentage and a number of people such as 10%,5, or unlimited';

/** True if one of the settings for sign-in is set: they are set together or not at all. */
const usesOidc = (env: Env) => Object.entries(env).some(([name, value]) => name.startsWith('OIDC_') && value);
const OIDC_RULE = {
  message:
    'must be set, as OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_SCOPES_CLAIM, OIDC_SCOPES are set together or not at all',
};

/** Time beyond a call's timeout that a shutdown may take, to store the outcome of the last call and to close. */
const AFTER_LAST_CALL_SECONDS = 10;

/**
 * Every setting of a process: its text for operators, its rule and its default. A setting with neither a default nor `?` is
 * required. `npm run reference` writes `.env.example` and `docs/reference/settings.md` from this file; a comment with one
 * line between settings is a heading there, and `@example` is shown instead of the default.
 */
export class Env {
  // Required

  /**
   * The URL of the platform's API. http:// is accepted only for loopback.
   * @example https://api.platform.example
   */
  @Read((text) => text.trim().replace(/(?<!\/)\/+$/, ''))
  @HttpsUrl('the platform')
  PLATFORM_BASE_URL!: string;

  /** The API key that the platform gave you. It is sent only to the platform. */
  @Matching(/^[\x20-\x7e]+$/, 'must hold the API key that the platform gave you, in one line of printable ASCII')
  PLATFORM_API_KEY!: string;

  /**
   * The webhook secret that the platform gave you, or both secrets during a rotation, comma-separated. Write a secret that
   * contains a comma as JSON: ["first,secret", "second"]. A short or repetitive secret causes a warning at the start and in
   * doctor: ask the platform for at least 32 random characters.
   */
  @Secrets('must hold the webhook secret (comma-separated while one is being rotated)')
  PLATFORM_WEBHOOK_SECRET!: string[];

  /**
   * The first key of this service's own API, with every scope: at least 32 random characters (openssl rand -hex 24). Set it
   * to off once another key with the scope admin exists.
   */
  @BootstrapKey()
  ADMIN_API_KEY!: string;

  /**
   * The database, such as postgresql://notebridge:password@db.example:5432/notebridge?sslmode=verify-full. docker compose
   * sets it; npm run demo and npm run dev bring one of their own.
   */
  @PostgresUrl()
  DATABASE_URL!: string;

  /**
   * Keys, as id:base64 of 32 bytes (echo "k1:$(openssl rand -base64 32)"), comma-separated. The service writes with the
   * first key and reads with all. Keep copies in a safe place, apart from the database. DATA_KEYS encrypt personal data,
   * which is unreadable without them.
   */
  @Keys()
  DATA_KEYS!: string[];

  /**
   * FINGERPRINT_KEYS create the fingerprints that show which emails, profiles and notes are equal. It is one key, which
   * stays for the life of the database.
   */
  @Keys()
  @OneKey()
  FINGERPRINT_KEYS!: string[];

  /** AUDIT_KEYS sign the audit log and the rows of API keys and browser sessions, which are invalid without a signature. */
  @Keys()
  AUDIT_KEYS!: string[];

  // The service

  /** The port of the API. A process whose ROLES lack api serves /health and /metrics on it. 0 means any free port. */
  @WholeNumber(0, 65_535)
  PORT = 3000;

  /**
   * A HOST other than loopback needs TRUSTED_PROXIES, or its name in PLAINTEXT_HOSTS, because the service has no TLS
   * listener.
   */
  @ListenHost()
  HOST = '127.0.0.1';

  /**
   * The URL under which others reach this service; /docs and /openapi.json show it. http:// is accepted only for loopback
   * and PLAINTEXT_HOSTS.
   * @example https://notebridge.ehr.example
   */
  @IsOptional()
  @PublicUrl()
  PUBLIC_URL?: string;

  /**
   * Proxies in front of the service, as addresses or ranges. Only their X-Forwarded-For is trusted as the source of a
   * request. If unset, the source is the address that connects.
   * @example 10.0.0.5,172.16.0.0/12
   */
  @AddressRanges()
  TRUSTED_PROXIES: string[] = [];

  /** The parts that this process runs: api, worker, or both. */
  @List('must be api, worker or api,worker', (role) => role === 'api' || role === 'worker')
  @Rule('must be api, worker or api,worker', (roles) => String(roles) !== '')
  ROLES: Role[] = ['api', 'worker'];

  /**
   * Sign-in of people to the console with an OpenID provider (docs/sign-in.md): set all five, or none. Spell OIDC_ISSUER as
   * the provider does. The redirect URI of the client is PUBLIC_URL with /v1/sign-in/callback. OIDC_SCOPES_CLAIM is the
   * claim of the ID token that lists a person's groups or roles. OIDC_SCOPES maps each to scopes, as JSON.
   * @example https://login.ehr.example
   */
  @ValidateIf(usesOidc)
  @IsDefined(OIDC_RULE)
  @HttpsUrl('an OpenID provider')
  OIDC_ISSUER?: string;

  /** @example notebridge */
  @ValidateIf(usesOidc)
  @IsDefined(OIDC_RULE)
  OIDC_CLIENT_ID?: string;

  /** @example … */
  @ValidateIf(usesOidc)
  @IsDefined(OIDC_RULE)
  OIDC_CLIENT_SECRET?: string;

  /** @example groups */
  @ValidateIf(usesOidc)
  @IsDefined(OIDC_RULE)
  OIDC_SCOPES_CLAIM?: string;

  /** @example {"notebridge-admins": ["admin", "operations"]} */
  @ValidateIf(usesOidc)
  @IsDefined(OIDC_RULE)
  OIDC_SCOPES?: string;

  /** Whether an API key can sign in to the console. false also ends the sessions that keys opened. */
  @Flag()
  CONSOLE_KEY_SIGN_IN = true;

  /** How many minutes the console may be unused before the server ends the session of the browser. */
  @WholeNumber(1, 480)
  SESSION_IDLE_MINUTES = 30;

  /**
   * Whether each request with an API key must name the EHR's user in Notebridge-On-Behalf-Of. true also ends sign-in to the
   * console with keys, because a key names no person.
   */
  @Flag()
  REQUIRE_ON_BEHALF_OF = false;

  /** Whether /docs and /openapi.json are served. They need no key and show only what is in the source. */
  @Flag()
  API_DOCS = true;

  /**
   * Seconds between the stop signal and the closing of the listener. /health/ready answers 503 from the signal on. Give a
   * load balancer the time of two health checks, so that a restart refuses no connection. docker-compose.yml sets 10 for its
   * api unless this line sets another number.
   */
  @Seconds(0, 60)
  SHUTDOWN_DELAY_SECONDS = 0;

  /**
   * Maximum connections of one process; above it, new ones are closed. With the limits of bodies, it bounds the memory of
   * requests that are not checked yet.
   */
  @WholeNumber(1, 1_000_000)
  MAX_CONNECTIONS = 500;

  /** Timeout in seconds for the headers of a request. */
  @Seconds(0.1, 3_600)
  HEADERS_TIMEOUT_SECONDS = 10;

  /** Timeout in seconds for a connection on which nothing moves. Answers that wait are sent within a minute. */
  @Seconds(0.1, 3_600)
  SILENCE_TIMEOUT_SECONDS = 120;

  /** Timeout in seconds for a body, except files. */
  @Seconds(1, 3_600)
  BODY_TIMEOUT_SECONDS = 30;

  /**
   * Maximum requests per second of one API key or browser session in one process; above it: 429. Health, metrics and webhooks
   * have no limit. Requests without a valid key have limits by address (docs/security.md).
   */
  @WholeNumber(1, 1_000_000)
  KEY_REQUESTS_PER_SECOND = 500;

  /** trace, debug, info, warn, error, fatal or silent. */
  @OneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent')
  LOG_LEVEL = 'info';

  /**
   * The OpenTelemetry collector that receives traces, as OTLP over HTTP with JSON (usually port 4318). http:// is accepted
   * only for loopback and PLAINTEXT_HOSTS. If unset, there are no traces. Headers are name=value, comma-separated. The other
   * standard variables apply too, such as OTEL_SERVICE_NAME and OTEL_TRACES_SAMPLER (docs/operations/tracing.md).
   * @example https://collector.example:4318
   */
  @IsOptional()
  @PublicUrl()
  OTEL_EXPORTER_OTLP_ENDPOINT?: string;

  /** @example authorization=Bearer%20… */
  @IsOptional()
  OTEL_EXPORTER_OTLP_HEADERS?: string;

  /** @example http/json */
  @IsOptional()
  @Matching(/^http\/json$/, 'must be http/json, the only protocol that this service speaks (port 4318 of a collector)')
  OTEL_EXPORTER_OTLP_PROTOCOL?: string;

  // Stores

  /**
   * PostgreSQL and Redis on other hosts need TLS with a checked certificate: sslmode=verify-full (and
   * &sslrootcert=/path/ca.pem for a private authority) or rediss:// (NODE_EXTRA_CA_CERTS=/path/ca.pem). List hosts on a
   * private network here to allow connections without TLS; docker compose lists its own.
   * @example postgres,redis
   */
  @List()
  PLAINTEXT_HOSTS: string[] = [];

  /**
   * Node's switch that disables certificate checks. With 0 the service does not start, unless the platform is on loopback.
   * @example 1
   */
  @IsOptional()
  @CheckedCertificates()
  NODE_TLS_REJECT_UNAUTHORIZED?: string;

  /**
   * The role that owns the tables, used only by `npm start migrate` to apply the migrations. prisma/roles.sql creates a role
   * for DATABASE_URL that cannot change the audit log. If unset, the role of DATABASE_URL does everything, and the audit log
   * is not protected from it.
   * @example postgresql://owner:password@db.example:5432/notebridge?sslmode=verify-full
   */
  @IsOptional()
  @PostgresUrl()
  DATABASE_OWNER_URL?: string;

  /**
   * Maximum connections of one process to PostgreSQL, at least 17. The total of all processes must stay below the limits of
   * the server (max_connections), the database and the role.
   */
  @WholeNumber(17, 1_000)
  DATABASE_CONNECTIONS = 19;

  /**
   * If unset, the queues use PostgreSQL. docker compose sets it. Its maxmemory-policy must be noeviction.
   * @example rediss://:password@redis.example:6379
   */
  @IsOptional()
  @RedisUrl()
  REDIS_URL?: string;

  /** The prefix of the queues' keys in Redis, for several installations that share one Redis. */
  @Matching(/^[A-Za-z0-9_-]{1,40}$/, 'must be 1 to 40 letters, digits, _ or -')
  QUEUE_PREFIX = 'notebridge';

  /**
   * Receives the newest link of the audit log each minute, as a POST of {"head", "at"}, so that npx notebridge audit verify
   * detects removed entries (docs/security.md). http:// is accepted only for loopback and PLAINTEXT_HOSTS. The log also
   * contains each link.
   * @example https://heads.example/notebridge
   */
  @IsOptional()
  @PublicUrl()
  AUDIT_HEADS_URL?: string;

  // Retention

  /**
   * How many days history is kept before it is removed, which the audit log records. Each kind can have its own number, or
   * off to keep it forever: calls to the platform, processed webhooks, events of the feed, names and emails in the rows of
   * finished imports, fingerprints of the URLs of recordings and other files.
   */
  @WholeNumber(1, 36_500)
  RETENTION_DAYS = 90;

  /** @example 90 */
  @IsOptional()
  @KeptDays()
  CALLS_RETENTION_DAYS?: Days;

  /** @example 90 */
  @IsOptional()
  @KeptDays()
  DELIVERIES_RETENTION_DAYS?: Days;

  /** @example 90 */
  @IsOptional()
  @KeptDays()
  FEED_RETENTION_DAYS?: Days;

  /** @example 90 */
  @IsOptional()
  @KeptDays()
  IMPORT_ROWS_RETENTION_DAYS?: Days;

  /** @example 90 */
  @IsOptional()
  @KeptDays()
  RECORDINGS_RETENTION_DAYS?: Days;

  /**
   * How many days notes, and transcripts with insights, are kept after their first fetch. off, the default, keeps them. The
   * session stays and shows when they were removed. A later fetch restores only content that the platform has changed since.
   */
  @KeptDays()
  NOTES_RETENTION_DAYS: Days = 'off';

  @KeptDays()
  TRANSCRIPTS_RETENTION_DAYS: Days = 'off';

  /**
   * How many days files, criteria, rejection and result of a finished compliance job are kept. off, the default, keeps them.
   * Its ids and its outcome stay.
   */
  @KeptDays()
  COMPLIANCE_RETENTION_DAYS: Days = 'off';

  /**
   * How many days audit entries are kept: at least 365, or off for no limit. The default is the six years that 45 CFR
   * 164.316(b)(2)(i) requires.
   */
  @KeptDays(365)
  AUDIT_RETENTION_DAYS: Days = 2_192;

  /**
   * Whether notes, transcripts and insights are kept or erased when the EHR deletes their client. Names and emails are
   * always erased. Notes of several clients are erased with the last of them.
   */
  @OneOf('keep', 'erase')
  ERASE_NOTES_OF_DELETED_CLIENTS = 'keep';

  // The platform

  /**
   * The JSON file with the details of the platform that its specification leaves open.
   * @example contract/platform.json
   */
  @IsOptional()
  PLATFORM_CONTRACT?: string;

  /**
   * The URL of the platform's recorder. A host without a scheme means https://. http:// is accepted only for loopback.
   * @example recorder.platform.example
   */
  @IsOptional()
  @Read((text) => (text.includes('://') ? text : `https://${text}`))
  @HttpsUrl('a page')
  PLATFORM_PARTNER_DOMAIN?: string;

  /**
   * Whether sending is held: everything is received and read, but people, requests and pushes to the EHR wait. Set it for
   * every process, for example while a backup is restored. An operator can also hold sending (npx notebridge hold).
   */
  @Flag()
  HOLD_SENDING = false;

  /**
   * The proxy for calls to the platform and uploads to its stores; https_proxy and no_proxy work too. TLS is checked end to
   * end. NO_PROXY lists hosts (with their subdomains) and addresses that are reached directly; * means every host.
   * @example http://user:password@proxy.example:3128
   */
  @IsOptional()
  @ProxyUrl()
  HTTPS_PROXY?: string;

  /** @example platform.internal,10.1.2.3 */
  @List()
  NO_PROXY: string[] = [];

  /** Timeout in seconds for a call to the platform. After it, the outcome of the call is unknown. */
  @Seconds(0.1, 60)
  PLATFORM_TIMEOUT_SECONDS = 10;

  /**
   * Maximum size of one answer of the platform; a larger one is not read. Parsing blocks the process: 16 MiB for at most 250
   * ms.
   * @example 16 MiB
   */
  @ByteSize(64 * KIB)
  PLATFORM_ANSWER_LIMIT = 16 * MIB;

  /** The platform's limit on user-management calls with one API key. */
  @WholeNumber(1, 1_000_000)
  USER_MANAGEMENT_CALLS_PER_MINUTE = 300;

  /** Seconds before a create without an answer is looked up, because the platform may commit late. */
  @Seconds(0, DAY_SECONDS)
  UNKNOWN_OUTCOME_GRACE_SECONDS = 60;

  /** The age in seconds at which an unfinished session is looked up, then the seconds between two lookups. */
  @Seconds(1, MONTH_SECONDS)
  SESSION_REFRESH_AFTER_SECONDS = 900;

  @Seconds(1, MONTH_SECONDS)
  SESSION_REFRESH_EVERY_SECONDS = 600;

  /** The same for a compliance job. */
  @Seconds(0.1, MONTH_SECONDS)
  COMPLIANCE_REFRESH_AFTER_SECONDS = 5;

  @Seconds(0.1, MONTH_SECONDS)
  COMPLIANCE_REFRESH_EVERY_SECONDS = 5;

  // Webhooks and URLs

  /**
   * Maximum size of a webhook body. Events hold ids and flags, and notes are fetched.
   * @example 256 KiB
   */
  @ByteSize(1024)
  WEBHOOK_BODY_LIMIT = 256 * KIB;

  /**
   * Maximum age of a delivery in seconds; older ones are rejected. Unset by default, because a retry may keep the timestamp
   * of the first try.
   * @example 86400
   */
  @IsOptional()
  @WholeNumber(MIN_AGE_WINDOW_SECONDS, 366 * DAY_SECONDS)
  WEBHOOK_MAX_AGE_SECONDS?: number;

  /**
   * Origins to which the recorder may send a browser back, comma-separated.
   * @example https://ehr.example
   */
  @HttpUrls()
  REDIRECT_ALLOWED_ORIGINS: string[] = [];

  /**
   * Whether file URLs on private networks are accepted. Implied if the platform is on loopback.
   * @example false
   */
  @IsOptional()
  @Flag()
  PRIVATE_HOSTS_ALLOWED?: boolean;

  /**
   * Hosts on private networks to which subscriptions may push events, comma-separated. Loopback is implied if the platform
   * is on loopback.
   * @example ehr.internal,10.0.0.5
   */
  @Hosts()
  SUBSCRIPTION_HOSTS_ALLOWED: string[] = [];

  // Imports

  /**
   * Limits of deletions, and of clients that lose a provider. An import that exceeds both the share and the number needs
   * confirmation.
   */
  @Matching(THRESHOLD, THRESHOLD_RULE)
  IMPORT_MAX_DELETES = '10%,5';

  @Matching(THRESHOLD, THRESHOLD_RULE)
  IMPORT_MAX_PROVIDER_REMOVALS = '10%,5';

  /**
   * Maximum size of all files of one import together.
   * @example 2 GiB
   */
  @ByteSize(1024)
  IMPORT_BODY_LIMIT = 2 * GIB;

  /** Maximum rows of one import. In the database, a row needs many times the space of a short line. */
  @WholeNumber(1, 10_000_000)
  IMPORT_MAX_ROWS = 3_000_000;

  /** True if callers may name addresses on private networks. Defaults to true if the platform is on loopback. */
  get privateHostsAllowed(): boolean {
    return this.PRIVATE_HOSTS_ALLOWED ?? this.isPlatformHere;
  }

  /** True if the platform is on loopback, as the simulator is. */
  get isPlatformHere(): boolean {
    return isPlatformHere(this);
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
